//! Writes the Unicode class tables from `regex-syntax`, whose pinned version decides the Unicode version.
//!
//! Two forms of the same facts: `CLASSES`, the ranges of each class by name, for the Python references; and a
//! two-stage table of flag bytes (`STAGE1[cp >> 8]` picks a block of `STAGE2`), for the scanners.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use regex_syntax::hir::{Class, HirKind};

/// Name of a class, the expression for it, and the flag bits that its characters get in the table, if any.
const CLASSES: &[(&str, &str, u8)] = &[
    ("L", r"\p{L}", 1),
    ("N", r"\p{N}", 2),
    ("White_Space", r"\p{White_Space}", 4),
    ("M", r"\p{M}", 8),
    ("Lu", r"\p{Lu}", 16),
    ("Lt", r"\p{Lt}", 16),
    ("Ll", r"\p{Ll}", 32),
    ("Lm", r"\p{Lm}", 64),
    ("Lo", r"\p{Lo}", 64),
    ("Word", r"\w", 128),
    ("Cased", r"\p{Cased}", 0),
    ("Case_Ignorable", r"\p{Case_Ignorable}", 0),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut flags = vec![0u8; 0x11_0000];
    let mut code = String::from("pub static CLASSES: &[(&str, &[(u32, u32)])] = &[\n");
    for &(name, regex, bit) in CLASSES {
        write!(code, "    ({name:?}, &[")?;
        for (first, last) in ranges(regex)? {
            write!(code, "({first},{last}),")?;
            flags[first as usize..=last as usize].iter_mut().for_each(|f| *f |= bit);
        }
        code.push_str("]),\n");
    }
    code.push_str("];\n");

    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut stage1 = Vec::new();
    for block in flags.chunks(256) {
        let at = blocks.iter().position(|seen| *seen == block).unwrap_or(blocks.len());
        if at == blocks.len() {
            blocks.push(block);
        }
        stage1.push(u8::try_from(at)?);
    }
    writeln!(code, "pub static STAGE1: [u8; {}] = {stage1:?};", stage1.len())?;
    writeln!(code, "pub static STAGE2: [[u8; 256]; {}] = {blocks:?};", blocks.len())?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("unicode_16.rs"), code)?;
    Ok(())
}

fn ranges(regex: &str) -> Result<Vec<(u32, u32)>, Box<dyn Error>> {
    match regex_syntax::parse(regex)?.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            Ok(class.iter().map(|r| (u32::from(r.start()), u32::from(r.end()))).collect())
        }
        _ => Err(format!("{regex} is not a character class").into()),
    }
}
