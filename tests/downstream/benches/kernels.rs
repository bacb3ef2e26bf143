use downstream as _;

kbench::main!();
