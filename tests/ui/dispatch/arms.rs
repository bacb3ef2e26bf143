fn few(x: &[f32]) -> usize {
    x.len()
}

fn many(x: &[f32]) -> usize {
    x.len()
}

kbench::dispatch! {
    fn no_default(x: &[f32]) -> usize {
        match x.len() {
            tuned().. => many,
            tuned.. => many,
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn two_defaults(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10, 1 << 20).. => many,
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn no_other(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10).. => many,
        }
    }
}

kbench::dispatch! {
    fn other_first(x: &[f32]) -> usize {
        match x.len() {
            _ => few,
            tuned(1 << 10).. => many,
        }
    }
}

kbench::dispatch! {
    fn other_patterns(x: &[f32]) -> usize {
        match x.len() {
            0 => few,
            tuned(5) => few,
            1..10 => few,
            ..20 => few,
            30..=40 => few,
            n if n > 3 => few,
            #[cfg(test)]
            tuned(5).. => many,
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn calls(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10).. => many(x),
            512.. => { many },
            256.. =>,
            128.. => few + many,
            _ => few::<f32, 4>(x),
        }
    }
}

kbench::dispatch! {
    fn no_comma(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10).. => many
            _ => few
        }
    }
}

kbench::dispatch! {
    fn no_arrow(x: &[f32]) -> usize {
        match x.len() {
            tuned(1 << 10)..
        }
    }
}

fn main() {
    no_default(&[]);
    calls(&[]);
}
