"""The writing system of a text: Unicode's property Script, by the core's tables.

Characters that are used with any script (0 to 9, punctuation, white space, most combining marks) have none.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from . import _core
from .patterns import UNICODE

MIXED, NONE = "mixed", "none"

SCRIPTS = tuple(
    """
    Adlam Ahom Anatolian_Hieroglyphs Arabic Armenian Avestan Balinese Bamum Bassa_Vah Batak Bengali Bhaiksuki
    Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal Carian Caucasian_Albanian Chakma Cham Cherokee
    Chorasmian Coptic Cuneiform Cypriot Cypro_Minoan Cyrillic Deseret Devanagari Dives_Akuru Dogra Duployan
    Egyptian_Hieroglyphs Elbasan Elymaic Ethiopic Garay Georgian Glagolitic Gothic Grantha Greek Gujarati
    Gunjala_Gondi Gurmukhi Gurung_Khema Han Hangul Hanifi_Rohingya Hanunoo Hatran Hebrew Hiragana Imperial_Aramaic
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kawi Kayah_Li Kharoshthi
    Khitan_Small_Script Khmer Khojki Khudawadi Kirat_Rai Lao Latin Lepcha Limbu Linear_A Linear_B Lisu Lycian Lydian
    Mahajani Makasar Malayalam Mandaic Manichaean Marchen Masaram_Gondi Medefaidrin Meetei_Mayek Mende_Kikakui
    Meroitic_Cursive Meroitic_Hieroglyphs Miao Modi Mongolian Mro Multani Myanmar Nabataean Nag_Mundari Nandinagari
    New_Tai_Lue Newa Nko Nushu Nyiakeng_Puachue_Hmong Ogham Ol_Chiki Ol_Onal Old_Hungarian Old_Italic
    Old_North_Arabian Old_Permic Old_Persian Old_Sogdian Old_South_Arabian Old_Turkic Old_Uyghur Oriya Osage Osmanya
    Pahawh_Hmong Palmyrene Pau_Cin_Hau Phags_Pa Phoenician Psalter_Pahlavi Rejang Runic Samaritan Saurashtra Sharada
    Shavian Siddham SignWriting Sinhala Sogdian Sora_Sompeng Soyombo Sundanese Sunuwar Syloti_Nagri Syriac Tagalog
    Tagbanwa Tai_Le Tai_Tham Tai_Viet Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Todhri
    Toto Tulu_Tigalari Ugaritic Vai Vithkuqi Wancho Warang_Citi Yezidi Yi Zanabazar_Square
    """.split()
)
"""The scripts of Unicode 16, by the names of the standard."""


@functools.cache
def _table() -> npt.NDArray[np.uint8]:
    """For each code point, which of `SCRIPTS` it belongs to, counted from 1; 0 for none."""
    table = np.zeros(0x110000, dtype=np.uint8)
    for number, name in enumerate(SCRIPTS, 1):
        for first, last in _core.unicode_ranges(name, UNICODE):
            table[first : last + 1] = number
    return table


class _Script(dict[str, "str | None"]):
    """The script of a character, or None; looked up when it is first met."""

    def __missing__(self, char: str) -> str | None:
        number = int(_table()[ord(char)])
        script = self[char] = SCRIPTS[number - 1] if number else None
        return script


_SCRIPT = _Script()


def script_of(text: str) -> str:
    """The script of a text: `"mixed"` where it has characters of several, `"none"` where none of its has one.

    >>> script_of(" день 1"), script_of("xя"), script_of("1 + 2")
    ('Cyrillic', 'mixed', 'none')
    """
    scripts = {_SCRIPT[char] for char in text}
    scripts.discard(None)
    return MIXED if len(scripts) > 1 else scripts.pop() or NONE if scripts else NONE
