//! As much of JSON as is needed to find two large members of a file and read them fast. What is unusual, let alone
//! wrong, gives None: whoever asked then reads the file with a whole parser, which says what is wrong with it.

use std::ops::Range;

/// A place in JSON.
pub struct Reader<'d> {
    data: &'d [u8],
    at: usize,
}

impl<'d> Reader<'d> {
    /// At the start, which a byte-order mark may stand before.
    pub fn new(data: &'d [u8]) -> Option<Self> {
        std::str::from_utf8(data).ok()?;
        Some(Self { data, at: if data.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 } })
    }

    pub fn at_place(&self, at: usize) -> Self {
        Self { at, ..*self }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no white space.
    #[inline]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.data.get(self.at)?;
            if !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Passes a byte, with the white space before it.
    #[inline]
    pub fn pass(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Whether another item of a list or object follows, which ends with `end`.
    #[inline]
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        (byte == b',' || byte == end).then_some(byte == b',')
    }

    /// Passes a list, with `item` for each item.
    #[inline]
    pub fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.pass(b'[')?;
        if self.peek()? == b']' {
            return self.pass(b']');
        }
        loop {
            item(self)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }

    /// Passes an object, with `member` for the value of each key.
    #[inline]
    pub fn object(&mut self, mut member: impl FnMut(&mut Self, &[u8]) -> Option<()>) -> Option<()> {
        let mut buffer = String::new();
        self.pass(b'{')?;
        if self.peek()? == b'}' {
            return self.pass(b'}');
        }
        loop {
            let key = self.string(&mut buffer)?;
            self.pass(b':')?;
            member(self, key)?;
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// A string as UTF-8, in `buffer` where it has escapes.
    #[inline]
    pub fn string<'b>(&mut self, buffer: &'b mut String) -> Option<&'b [u8]>
    where
        'd: 'b,
    {
        self.pass(b'"')?;
        let start = self.at;
        loop {
            match *self.data.get(self.at)? {
                b'"' => {
                    self.at += 1;
                    return Some(&self.data[start..self.at - 1]);
                }
                b'\\' => {
                    self.at = start;
                    return self.string_with_escapes(buffer);
                }
                0..=0x1f => return None,
                _ => self.at += 1,
            }
        }
    }

    #[inline(never)]
    fn string_with_escapes<'b>(&mut self, buffer: &'b mut String) -> Option<&'b [u8]> {
        buffer.clear();
        loop {
            let rest = &self.data[self.at..];
            let len = rest.iter().position(|&byte| matches!(byte, b'"' | b'\\' | 0..=0x1f))?;
            buffer.push_str(std::str::from_utf8(&rest[..len]).ok()?);
            self.at += len + 1;
            match rest[len] {
                b'"' => return Some(buffer.as_bytes()),
                b'\\' => buffer.push(self.escape()?),
                _ => return None,
            }
        }
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Option<char> {
        let byte = *self.data.get(self.at)?;
        self.at += 1;
        Some(match byte {
            b'"' | b'\\' | b'/' => byte.into(),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let high = self.four_digits()?;
                if !(0xd800..0xdc00).contains(&high) {
                    return char::from_u32(high); // None for half a pair
                }
                if !self.data[self.at..].starts_with(b"\\u") {
                    return None;
                }
                self.at += 2;
                let low = self.four_digits().filter(|low| (0xdc00..0xe000).contains(low))?;
                return char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00));
            }
            _ => return None,
        })
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.data.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    }

    /// A whole number up to `most`.
    #[inline]
    pub fn number(&mut self, most: u32) -> Option<u32> {
        self.peek()?;
        let rest = &self.data[self.at..];
        let len = rest.iter().position(|byte| !byte.is_ascii_digit())?;
        if len == 0 || len > 10 || (len > 1 && rest[0] == b'0') || matches!(rest[len], b'.' | b'e' | b'E') {
            return None;
        }
        self.at += len;
        let value = rest[..len].iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'));
        u32::try_from(value).ok().filter(|&value| value <= most)
    }

    /// Passes a value of any kind, in which nothing is checked but that its strings and brackets end.
    pub fn skip(&mut self) -> Option<Range<usize>> {
        self.peek()?;
        let (start, mut depth) = (self.at, 0usize);
        loop {
            match *self.data.get(self.at)? {
                b'"' => self.skip_string()?,
                b'[' | b'{' => {
                    depth += 1;
                    self.at += 1;
                }
                b']' | b'}' if depth > 1 => {
                    depth -= 1;
                    self.at += 1;
                }
                b']' | b'}' if depth == 1 => {
                    self.at += 1;
                    return Some(start..self.at);
                }
                b']' | b'}' | b',' if depth == 0 => return (self.at > start).then_some(start..self.at),
                _ => self.at += 1,
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            match *self.data.get(self.at)? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some(())
    }
}
