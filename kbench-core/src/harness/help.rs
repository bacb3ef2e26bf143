use super::flags::{FLAGS, Flag, Group};

/// The text of `--help`, made from the table of flags.
pub(super) fn help() -> String {
    let mut text = String::from(
        "Which kernel should run at which size, and how sure are we?\n\n\
         Usage: [FILTER]... [FLAG]...\n\n\
         A FILTER is a part of a full name, module::path::kernel/variant/type/axis=value,axis=value.\n",
    );
    for (group, title) in Group::SHOWN {
        text += &format!("\n{title}\n");
        FLAGS.iter().filter(|flag| flag.group == group).for_each(|flag| text += &line(flag));
    }
    text += "\nEvery flag has a twin in the environment, KBENCH_BUDGET for --budget; the flag wins, and so does the\n\
             --bench of cargo over another mode. Values of a flag that may be repeated are separated by semicolons there.\n\
             Exit codes: 0 fine, 1 internal, 2 usage, 4 nothing selected, 100 a check failed, 101 panic,\n\
             102 the gate.\n";
    text
}

fn line(flag: &Flag) -> String {
    let short = flag.short.map_or_else(|| "    ".to_owned(), |short| format!("-{short}, "));
    let value = flag.value.map_or_else(String::new, |value| format!(" {value}"));
    format!("  {short}{:<32} {}\n", format!("--{}{value}", flag.name), flag.help)
}
