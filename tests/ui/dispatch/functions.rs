fn few(x: &[f32]) -> usize {
    x.len()
}

kbench::dispatch! {}

kbench::dispatch! {
    struct Dispatcher;
}

kbench::dispatch! {
    fn no_body(x: &[f32]) -> usize;
}

kbench::dispatch! {
    fn no_match(x: &[f32]) -> usize {
        few(x)
    }
}

kbench::dispatch! {
    fn statements(x: &[f32]) -> usize {
        let n = x.len();
        match n {
            _ => few,
        }
    }
}

kbench::dispatch! {
    fn empty(x: &[f32]) -> usize {}
}

kbench::dispatch! {
    fn first(x: &[f32]) -> usize {
        match x.len() {
            _ => few,
        }
    }

    fn second(x: &[f32]) -> usize {
        match x.len() {
            _ => few,
        }
    }
}

kbench::dispatch! {
    async fn later(x: &[f32]) -> usize {
        match x.len() {
            _ => few,
        }
    }
}

struct Data;

impl Data {
    kbench::dispatch! {
        fn method(&self, x: &[f32]) -> usize {
            match x.len() {
                _ => few,
            }
        }
    }
}

kbench::dispatch! {
    fn patterns(_: f32, mut x: &[f32], (a, b): (usize, usize), [c, d]: [u8; 2], ref e: Vec<(u8, u8)>, ok: Option<u8>) {
        match x.len() {
            _ => few,
        }
    }
}

fn main() {
    no_match(&[]);
    first(&[]);
}
