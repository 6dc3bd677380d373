//! Writes the Unicode class tables from `regex-syntax`, whose pinned version decides the Unicode version.
//!
//! Two forms of the same facts: `CLASSES`, the ranges of each class and script by name, for Python; and a two-stage table of flag bytes (`STAGE1[cp >> 8]` picks a block of `STAGE2`), for the scanners.

use std::{env, error::Error, fmt::Write as _, fs, path::Path};

use regex_syntax::hir::{Class, HirKind};

/// Name of a class, the expression for it, and the flag bits that its characters get in the table.
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
];

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
    let scripts: Vec<_> = SCRIPTS.split_whitespace().map(|name| (name, format!(r"\p{{{name}}}"), 0)).collect();
    let classes = CLASSES.iter().map(|&(name, regex, bit)| (name, regex, bit));
    for (name, regex, bit) in classes.chain(scripts.iter().map(|(name, regex, bit)| (*name, regex.as_str(), *bit))) {
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
