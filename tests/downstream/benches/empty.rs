// Nothing is linked: `use downstream as _;` is missing.
kbench::main!();
