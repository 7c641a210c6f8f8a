//! Completion of command lines in shells: the words of a line, and the candidates for the last one.

pub(crate) mod candidates;
pub(crate) mod shell_words;
