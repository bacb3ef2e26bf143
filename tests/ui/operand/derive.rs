use kbench::Operand;

#[derive(Operand)]
enum Choice {
    This,
}

#[derive(Operand)]
#[operand(colour)]
struct Unknown {
    x: f32,
}

struct Plain;

#[derive(Operand)]
struct WithPlain {
    x: f32,
    plain: Plain,
}

#[derive(Clone, Copy, Operand)]
#[operand(element)]
struct WithoutLayout {
    x: f32,
}

#[derive(Clone, Copy, Operand)]
#[operand(element)]
#[repr(C)]
struct WithoutField {
    x: f32,
    #[operand(skip)]
    y: f32,
}

#[derive(Clone, Operand)]
#[operand(element)]
#[repr(C)]
struct WithoutCopy {
    x: f32,
}

#[derive(Clone, Operand)]
#[operand(upload)]
struct WithText {
    text: String,
}

#[derive(Clone, Operand)]
#[operand(upload)]
struct Many(u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8, u8);

fn main() {}
