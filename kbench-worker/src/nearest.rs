//! "did you mean": the valid choice that is closest to what was typed.

/// The closest of some choices, unless even that is far off.
pub fn nearest<'a>(typed: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let tolerance = (typed.chars().count() / 3).max(2);
    choices
        .into_iter()
        .map(|choice| (distance(typed, choice), choice))
        .filter(|(distance, choice)| {
            *distance <= tolerance || (typed.len() > 2 && choice.contains(typed))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, choice)| choice)
}

/// Edit distance with transpositions of neighbours counted as one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=b.len()).collect()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_find_their_word() {
        let words = ["threads", "thorough", "budget", "seed"];
        assert_eq!(nearest("thread", words), Some("threads"));
        assert_eq!(nearest("buget", words), Some("budget"));
        assert_eq!(nearest("sede", words), Some("seed"));
        assert_eq!(nearest("elephant", words), None);
    }
}
