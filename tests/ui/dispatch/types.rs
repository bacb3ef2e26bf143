fn few(x: &[f32]) -> usize {
    x.len()
}

fn count(n: usize) -> usize {
    n
}

fn other(x: &[f64]) -> usize {
    x.len()
}

kbench::dispatch! {
    fn work_of_another_type(x: &[f32]) -> usize {
        match x.len() as f64 {
            tuned(1 << 10).. => few,
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn number_of_another_type(x: &[f32]) -> usize {
        match x.len() {
            tuned(1e3).. => few,
            "64".. => few,
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn number_that_varies(n: usize) -> usize {
        match n {
            tuned(n).. => count,
            _ => count,
        }
    }
}

kbench::dispatch! {
    fn function_that_does_not_fit(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10).. => other,
            64.. => missing,
            _ => few,
        }
    }
}

fn main() {}
