//! Writes the Unicode class tables from `regex-syntax`, whose pinned version decides the Unicode version.
//!
//! Two forms of the same facts: `CLASSES`, the ranges of each class by name, for split patterns and the Python
//! references; and for the scanners a flag byte a character, in a two-stage table (`STAGE1[cp >> 8]` picks a block of
//! `STAGE2`) and, for the first 65,536, in one piece (`LOW`).
//! `OLD_CLASSES` and its tables are the same of an older version, from `unicode_categories`.
//! `CASES` holds each pair of characters that are the same without their case.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};
use unicode_categories::UnicodeCategories;

/// Classes of BERT's basic tokenization, by the tables that HF tokenizers has for it.
type IsIn = fn(char) -> bool;
const OLD: &[(&str, u8, IsIn)] =
    &[("C", 1, |c| c.is_other()), ("Mn", 2, |c| c.is_mark_nonspacing()), ("P", 4, |c| c.is_punctuation())];

/// Classes that have a bit in the table of flags.
const FLAGS: &[(&str, u8)] = &[
    ("L", 1),
    ("N", 2),
    ("White_Space", 4),
    ("M", 8),
    ("Lu", 16),
    ("Lt", 16),
    ("Ll", 32),
    ("Lm", 64),
    ("Lo", 64),
    ("Word", 128),
];

/// Every value of General_Category but Cs, which UTF-8 cannot spell, and every group of them.
const CATEGORIES: &str = "L N M P S Z C LC Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp \
     Cc Cf Co Cn";

const PROPERTIES: &str =
    "White_Space Alphabetic Uppercase Lowercase Cased Case_Ignorable Any ASCII ASCII_Hex_Digit Hex_Digit Emoji \
     Emoji_Presentation Extended_Pictographic Ideographic ID_Start ID_Continue XID_Start XID_Continue Dash \
     Default_Ignorable_Code_Point Grapheme_Extend Variation_Selector";

const SCRIPTS: &str =
    "Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali \
     Bhaiksuki Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham \
     Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra \
     Duployan Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian Glagolitic Gothic Grantha Greek Gujarati \
     Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic \
     Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi \
     Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian \
     Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui \
     Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari \
     New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic \
     Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya \
     Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada \
     Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog \
     Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri \
     Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let mut flags = vec![0u8; 0x11_0000];
    let mut code = String::from("pub static CLASSES: &[(&str, &[(u32, u32)])] = &[\n");
    let names = [CATEGORIES, PROPERTIES, SCRIPTS, "Word"].map(str::split_whitespace).into_iter().flatten();
    for name in names {
        let class = if name == "Word" { class(r"\w")? } else { class(&format!(r"\p{{{name}}}"))? };
        let bit = FLAGS.iter().find(|flag| flag.0 == name).map_or(0, |flag| flag.1);
        write!(code, "    ({name:?}, &[")?;
        for range in class.iter() {
            let (first, last) = (u32::from(range.start()), u32::from(range.end()));
            write!(code, "({first},{last}),")?;
            flags[first as usize..=last as usize].iter_mut().for_each(|f| *f |= bit);
        }
        code.push_str("]),\n");
    }
    code.push_str("];\n");

    code.push_str("pub static CASES: &[(u32, u32)] = &[");
    for c in '\0'..=char::MAX {
        let mut orbit = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
        orbit.case_fold_simple();
        for other in orbit.iter().flat_map(|range| range.start()..=range.end()).filter(|&other| other != c) {
            write!(code, "({},{}),", u32::from(c), u32::from(other))?;
        }
    }
    code.push_str("];\n");

    two_stages(&mut code, "", &flags)?;
    let mut old = vec![0u8; 0x11_0000];
    code.push_str("pub static OLD_CLASSES: &[(&str, &[(u32, u32)])] = &[\n");
    for (name, bit, is_in) in OLD {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for c in ('\0'..=char::MAX).filter(|&c| is_in(c)).map(u32::from) {
            old[c as usize] |= bit;
            match ranges.last_mut().filter(|range| range.1 + 1 == c) {
                Some(range) => range.1 = c,
                None => ranges.push((c, c)),
            }
        }
        writeln!(code, "    ({name:?}, &{ranges:?}),")?;
    }
    code.push_str("];\n");
    two_stages(&mut code, "OLD_", &old)?;
    scripts(&mut code)?;
    writeln!(code, "pub static LOW: [u8; 0x1_0000] = {:?};", &flags[..0x1_0000])?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("unicode_16.rs"), code)?;
    Ok(())
}

/// The scripts as HF tokenizers' UnicodeScripts has them: what was assigned in Unicode 9, a number each.
fn scripts(code: &mut String) -> Result<(), Box<dyn Error>> {
    const SPACE: usize = 0x20;
    const LONG_VOWEL: usize = 0x30fc;
    let known = class(r"\p{Age=9.0}")?;
    let han = SCRIPTS.split_whitespace().position(|name| name == "Han").map_or(0, |at| at + 1);
    let mut numbers = vec![0u8; 0x11_0000];
    code.push_str("pub static SCRIPT_CLASSES: &[(&str, &[(u32, u32)])] = &[\n");
    for (name, number) in SCRIPTS.split_whitespace().zip(1..) {
        let mut own = class(&format!(r"\p{{{name}}}"))?;
        own.intersect(&known);
        let number = if ["Hiragana", "Katakana"].contains(&name) { han } else { number };
        for range in own.iter() {
            let (first, last) = (u32::from(range.start()) as usize, u32::from(range.end()) as usize);
            numbers[first..=last].fill(u8::try_from(number)?);
        }
    }
    numbers[SPACE] = 0;
    numbers[LONG_VOWEL] = u8::try_from(han)?;
    for (name, number) in SCRIPTS.split_whitespace().zip(1..) {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (c, _) in numbers.iter().enumerate().filter(|(_, own)| usize::from(**own) == number) {
            match ranges.last_mut().filter(|range| range.1 + 1 == c) {
                Some(range) => range.1 = c,
                None => ranges.push((c, c)),
            }
        }
        writeln!(code, "    ({name:?}, &{ranges:?}),")?;
    }
    code.push_str("];\n");
    two_stages(code, "SCRIPT_", &numbers)
}

fn two_stages(code: &mut String, name: &str, flags: &[u8]) -> Result<(), Box<dyn Error>> {
    let mut blocks: Vec<&[u8]> = Vec::new();
    let mut stage1 = Vec::new();
    for block in flags.chunks(256) {
        let at = blocks.iter().position(|seen| *seen == block).unwrap_or(blocks.len());
        if at == blocks.len() {
            blocks.push(block);
        }
        stage1.push(u8::try_from(at)?);
    }
    writeln!(code, "pub static {name}STAGE1: [u8; {}] = {stage1:?};", stage1.len())?;
    writeln!(code, "pub static {name}STAGE2: [[u8; 256]; {}] = {blocks:?};", blocks.len())?;
    Ok(())
}

fn class(regex: &str) -> Result<ClassUnicode, Box<dyn Error>> {
    match regex_syntax::parse(regex)?.kind() {
        HirKind::Class(Class::Unicode(class)) => Ok(class.clone()),
        // A class of one character, such as \p{Zl}, is a literal.
        HirKind::Literal(literal) => {
            let mut chars = std::str::from_utf8(&literal.0)?.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(ClassUnicode::new([ClassUnicodeRange::new(c, c)])),
                _ => Err(format!("{regex} is not a character class").into()),
            }
        }
        _ => Err(format!("{regex} is not a character class").into()),
    }
}
