//! The text of a regular expression -> a tree of what it means. After this step the two syntaxes are one.
//!
//! Only what both syntaxes' own engines are known to do is read; everything else is refused by name. They differ:
//!
//! ```text
//!                 Oniguruma, as HF tokenizers has it        fancy-regex, as tiktoken has it
//! {1,3}+          repeats {1,3}                             is possessive
//! $               before every newline, and at the end      at the end ((?m): as Oniguruma)
//! ^               behind every newline, and at the start    at the start ((?m): as Oniguruma)
//! (?m)            . matches a newline too                   ^ and $ match at lines
//! \w              with ² ³ ¹ ¼ ½ ¾, without U+200C, U+200D  as Unicode says
//! [[:alpha:]]     by Unicode                                of ASCII
//! ```

use super::set::Set;
use crate::error::{Error, Result};
use crate::unicode::{ranges, ranges_by_any_name, VERSION};

/// How the expression is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Oniguruma,
    Tiktoken,
}

impl Syntax {
    pub fn new(name: &str) -> Result<Self> {
        match name {
            "oniguruma" => Ok(Self::Oniguruma),
            "tiktoken" => Ok(Self::Tiktoken),
            _ => Err(Error::value(format!("unknown syntax {name:?} of a split pattern; it is oniguruma or tiktoken"))),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Greed {
    Greedy,
    Lazy,
    Possessive,
}

/// What an expression means. `at` is where in its text a part stands that may not be possible in linear time.
#[derive(Debug, Clone, PartialEq)]
pub enum Node {
    Empty,
    /// One character of a set.
    Set(Set),
    Cat(Vec<Node>),
    /// The first that leads to a match.
    Alt(Vec<Node>),
    Repeat {
        node: Box<Node>,
        min: u32,
        max: Option<u32>,
        greed: Greed,
        at: usize,
    },
    /// Never gives back what it matched.
    Atomic {
        node: Box<Node>,
        at: usize,
    },
    /// The next character is one of the set; at the end of the text, `end`.
    Next {
        set: Set,
        end: bool,
    },
    Look {
        node: Box<Node>,
        behind: bool,
        negated: bool,
        at: usize,
    },
    /// The start of the text; with `line`, behind a newline too.
    Start {
        line: bool,
        at: usize,
    },
    WordBoundary {
        word: Set,
        negated: bool,
        at: usize,
    },
}

impl Node {
    pub fn cat(mut nodes: Vec<Node>) -> Node {
        match nodes.len() {
            0 => Node::Empty,
            1 => nodes.remove(0),
            _ => Node::Cat(nodes),
        }
    }

    /// Alternatives; those that are one character each are one set.
    pub fn alt(mut nodes: Vec<Node>) -> Node {
        let sets = nodes.iter().map(|node| if let Node::Set(set) = node { Some(set) } else { None });
        if let Some(sets) = sets.collect::<Option<Vec<_>>>() {
            return Node::Set(sets.into_iter().fold(Set::default(), |all, set| all.union(set)));
        }
        match nodes.len() {
            1 => nodes.remove(0),
            _ => Node::Alt(nodes),
        }
    }

    fn is_assertion(&self) -> bool {
        matches!(self, Node::Next { .. } | Node::Look { .. } | Node::Start { .. } | Node::WordBoundary { .. })
    }
}

/// Longer expressions are refused.
const MAX_CHARS: usize = 1 << 16;
/// Deeper nesting is refused.
const MAX_DEPTH: usize = 100;
/// Higher counts in `{n,m}` are refused.
const MAX_COUNT: u32 = 1000;

pub fn parse(text: &str, syntax: Syntax) -> Result<Node> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { text, chars, at: 0, depth: 0, syntax, flags: Flags::default() };
    if parser.chars.len() > MAX_CHARS {
        return Err(parser.refuse(0, format!("more than {MAX_CHARS} characters")));
    }
    let node = parser.alternatives()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.refuse(parser.at, "a ) without its (")),
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Flags {
    ignore_case: bool,
    dot_all: bool,
    multi_line: bool,
}

struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    at: usize,
    depth: usize,
    syntax: Syntax,
    flags: Flags,
}

/// What a backslash makes of what follows it.
enum Escape {
    Char(char),
    Class(Set),
    Assertion(Node),
}

impl Parser<'_> {
    fn refuse(&self, at: usize, what: impl std::fmt::Display) -> Error {
        Error::value(format!("the split pattern {:?}: at character {at}, {what} is not supported", shown(self.text)))
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = text.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i) == Some(&c));
        if found {
            self.at += text.chars().count();
        }
        found
    }

    fn is_oniguruma(&self) -> bool {
        self.syntax == Syntax::Oniguruma
    }

    /// Up to the end or to a `)`, which stays.
    fn alternatives(&mut self) -> Result<Node> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.refuse(self.at, format!("nesting deeper than {MAX_DEPTH}")));
        }
        let flags = self.flags;
        let start = self.at;
        let mut nodes = vec![self.sequence(start)?];
        while self.eat("|") {
            nodes.push(self.sequence(start)?);
        }
        self.flags = flags;
        self.depth -= 1;
        Ok(Node::alt(nodes))
    }

    /// Up to the end, a `|` or a `)`. The group around it starts at `start`.
    fn sequence(&mut self, start: usize) -> Result<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        let mut before = None; // a character without its case, which may be half of a ligature
        while let Some(c) = self.peek().filter(|c| !matches!(c, '|' | ')')) {
            let at = self.at;
            self.at += 1;
            let mut single = None;
            let node = match c {
                '(' => match self.group(at, start)? {
                    Some(node) => node,
                    None => continue,
                },
                '[' => Node::Set(self.class(at)?),
                '.' if self.flags.dot_all => Node::Set(Set::all()),
                '.' => Node::Set(Set::char('\n').negated()),
                '^' => Node::Start { line: self.is_oniguruma() || self.flags.multi_line, at },
                '$' if self.is_oniguruma() || self.flags.multi_line => Node::Next { set: Set::char('\n'), end: true },
                '$' => Node::Next { set: Set::default(), end: true },
                '*' | '+' | '?' => return Err(self.refuse(at, format!("{c} with nothing to repeat"))),
                '{' => return Err(self.refuse(at, "a { that is no count (write \\{ for the character)")),
                '\\' => match self.escape(at, false)? {
                    Escape::Char(c) => Node::Set(self.literal(*single.insert(c), at)?),
                    Escape::Class(set) => Node::Set(self.cased_class(set, at)?),
                    Escape::Assertion(node) => node,
                },
                _ => Node::Set(self.literal(*single.insert(c), at)?),
            };
            single = single.filter(|_| self.flags.ignore_case && self.is_oniguruma());
            if let (Some(first), Some(second)) = (before, single) {
                if is_folded_pair(first, second) {
                    let what = format!("(?i) of {first}{second}, which in Oniguruma matches a ligature too,");
                    return Err(self.refuse(at, what));
                }
            }
            let end = self.at;
            let node = self.repeats(node, at)?;
            before = single.filter(|_| self.at == end);
            nodes.push(node);
        }
        Ok(Node::cat(nodes))
    }

    /// One literal character.
    fn literal(&self, c: char, at: usize) -> Result<Set> {
        self.cased(Set::char(c), at)
    }

    fn cased(&self, set: Set, at: usize) -> Result<Set> {
        if !self.flags.ignore_case {
            return Ok(set);
        }
        if self.is_oniguruma() && !set.is_ascii() && set.folded() != set {
            return Err(self.refuse(at, "(?i) of letters outside ASCII, some of which match sequences in Oniguruma,"));
        }
        Ok(set.folded())
    }

    fn cased_class(&self, set: Set, at: usize) -> Result<Set> {
        if !self.flags.ignore_case {
            return Ok(set);
        }
        let folded = set.folded();
        if self.is_oniguruma() && folded != set {
            return Err(self.refuse(at, "(?i) of a class that tells case apart"));
        }
        Ok(folded)
    }

    // ======================== repeats ========================

    fn repeats(&mut self, node: Node, at: usize) -> Result<Node> {
        let start = self.at;
        let (min, max) = match self.peek() {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => self.counts()?,
            _ => return Ok(node),
        };
        let is_count = self.chars[start] == '{';
        if !is_count {
            self.at += 1;
        }
        if node.is_assertion() {
            return Err(self.refuse(start, "repeating what matches no character"));
        }
        let repeat = |node, min, max, greed| Node::Repeat { node: Box::new(node), min, max, greed, at };
        let repeated = if self.eat("?") {
            if is_count && self.is_oniguruma() && max == Some(min) {
                return Err(self.refuse(start, "{n}?, which in Oniguruma does not mean a lazy {n},"));
            }
            repeat(node, min, max, Greed::Lazy)
        } else if self.eat("+") {
            match is_count && self.is_oniguruma() {
                true => repeat(repeat(node, min, max, Greed::Greedy), 1, None, Greed::Greedy),
                false => repeat(node, min, max, Greed::Possessive),
            }
        } else {
            repeat(node, min, max, Greed::Greedy)
        };
        match self.peek() {
            Some('*' | '+' | '?' | '{') => Err(self.refuse(self.at, "a repeat of a repeat (put the first in (?:…))")),
            _ => Ok(repeated),
        }
    }

    /// `{n}`, `{n,}`, `{n,m}` or `{,m}`.
    fn counts(&mut self) -> Result<(u32, Option<u32>)> {
        let at = self.at;
        self.at += 1;
        let min = self.number(at)?;
        let counts = match self.eat(",") {
            true => (min.unwrap_or(0), self.number(at)?),
            false => (min.unwrap_or(0), min),
        };
        let is_count = self.eat("}") && (min.is_some() || counts.1.is_some());
        if !is_count || counts.1.is_some_and(|max| max < counts.0) {
            return Err(self.refuse(at, "a { that is no count (write \\{ for the character)"));
        }
        Ok(counts)
    }

    fn number(&mut self, at: usize) -> Result<Option<u32>> {
        let digits: String = self.chars[self.at..].iter().take_while(|c| c.is_ascii_digit()).collect();
        self.at += digits.len();
        match digits.parse() {
            Ok(number) if number <= MAX_COUNT => Ok(Some(number)),
            _ if digits.is_empty() => Ok(None),
            _ => Err(self.refuse(at, format!("a count above {MAX_COUNT}"))),
        }
    }

    // ======================== groups ========================

    /// What a `(` opens; None where it only sets flags. The group around it starts at `start`.
    fn group(&mut self, at: usize, start: usize) -> Result<Option<Node>> {
        let look = |node, behind, negated| Node::Look { node: Box::new(node), behind, negated, at };
        if !self.eat("?") {
            return self.closed(at).map(Some);
        }
        for (opening, behind, negated) in
            [("=", false, false), ("!", false, true), ("<=", true, false), ("<!", true, true)]
        {
            if self.eat(opening) {
                return Ok(Some(look(self.closed(at)?, behind, negated)));
            }
        }
        if self.eat(">") {
            return Ok(Some(Node::Atomic { node: Box::new(self.closed(at)?), at }));
        }
        if self.eat("<") || (!self.is_oniguruma() && self.eat("P<")) {
            while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
                self.at += 1;
            }
            return match self.eat(">") {
                true => self.closed(at).map(Some),
                false => Err(self.refuse(at, "a group name that does not end in >")),
            };
        }
        if self.eat("#") {
            while let Some(c) = self.next() {
                if c == ')' {
                    return Ok(None);
                }
            }
            return Err(self.refuse(at, "a comment that does not end"));
        }
        let flags = self.flags;
        self.read_flags(at)?;
        if self.eat(":") {
            let node = self.closed(at)?;
            self.flags = flags;
            return Ok(Some(node));
        }
        // (?i) holds up to the end of the group; in Ruby, whose syntax Oniguruma has, it opens one where it stands.
        if self.is_oniguruma() && at != start {
            return Err(self.refuse(at, "setting flags inside an expression (use (?i:…))"));
        }
        self.at += 1;
        Ok(None)
    }

    /// Flags, up to the `:` or `)` behind them, which stays.
    fn read_flags(&mut self, at: usize) -> Result<()> {
        let mut on = true;
        while let Some(c) = self.peek() {
            match (c, self.syntax) {
                (':' | ')', _) => return Ok(()),
                ('-', _) => on = false,
                ('i', _) => self.flags.ignore_case = on,
                ('m', Syntax::Oniguruma) | ('s', Syntax::Tiktoken) => self.flags.dot_all = on,
                ('m', Syntax::Tiktoken) => self.flags.multi_line = on,
                ('u', Syntax::Tiktoken) if on => {}
                _ => break,
            }
            self.at += 1;
        }
        let opening: String = self.chars[at..self.chars.len().min(self.at + 1)].iter().collect();
        Err(self.refuse(at, opening))
    }

    /// What stands inside a group, and its `)`.
    fn closed(&mut self, at: usize) -> Result<Node> {
        let node = self.alternatives()?;
        match self.eat(")") {
            true => Ok(node),
            false => Err(self.refuse(at, "a ( without its )")),
        }
    }

    // ======================== classes ========================

    /// A class, whose `[` at `at` has been read.
    fn class(&mut self, at: usize) -> Result<Set> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.refuse(at, format!("nesting deeper than {MAX_DEPTH}")));
        }
        let negated = self.eat("^");
        let mut operands: Vec<Option<Set>> = vec![None];
        loop {
            let item_at = self.at;
            let item = match self.next() {
                None => return Err(self.refuse(at, "a [ without its ]")),
                Some(']') => break,
                Some('&') if self.eat("&") => {
                    if self.flags.ignore_case && self.is_oniguruma() {
                        return Err(self.refuse(item_at, "&& inside (?i)"));
                    }
                    operands.push(None);
                    continue;
                }
                Some(c @ ('-' | '~')) if self.peek() == Some(c) => {
                    return Err(self.refuse(item_at, format!("{c}{c} in a class (write \\{c} for the character)")));
                }
                Some('[') if self.eat(":") => self.posix_class(item_at)?,
                Some('[') => self.class(item_at)?,
                Some('\\') => match self.escape(item_at, true)? {
                    Escape::Char(c) => self.range(c, item_at)?,
                    Escape::Class(set) => self.cased_class(self.alone(set, item_at)?, item_at)?,
                    Escape::Assertion(_) => return Err(self.refuse(item_at, "an assertion in a class")),
                },
                Some(c) => self.range(c, item_at)?,
            };
            if let Some(operand) = operands.last_mut() {
                *operand = Some(operand.take().unwrap_or_default().union(&item));
            }
        }
        self.depth -= 1;
        let Some(operands) = operands.into_iter().collect::<Option<Vec<_>>>() else {
            return Err(self.refuse(at, "an empty class or an empty side of && (write \\] for the character ])"));
        };
        let set = operands.into_iter().reduce(|both, next| both.intersection(&next)).unwrap_or_default();
        Ok(if negated { set.negated() } else { set })
    }

    /// A class that no `-` follows, unless that stands at the end.
    fn alone(&self, set: Set, at: usize) -> Result<Set> {
        match (self.peek(), self.chars.get(self.at + 1)) {
            (Some('-'), Some(&c)) if c != ']' => {
                Err(self.refuse(at, "a range from a class (write \\- for the character)"))
            }
            _ => Ok(set),
        }
    }

    /// The range from `first`, or `first` alone.
    fn range(&mut self, first: char, at: usize) -> Result<Set> {
        if self.peek() != Some('-') || matches!(self.chars.get(self.at + 1), None | Some(']')) {
            return self.literal(first, at);
        }
        self.at += 1;
        let last_at = self.at;
        let last = match self.next() {
            Some('\\') => match self.escape(last_at, true)? {
                Escape::Char(c) => Some(c),
                _ => None,
            },
            Some('[' | '-' | '&') | None => None,
            Some(c) => Some(c),
        };
        match last {
            Some(last) if first <= last => self.cased(Set::of(&[(u32::from(first), u32::from(last))]), at),
            _ => Err(self.refuse(at, "a range that does not rise from one character to another")),
        }
    }

    fn posix_class(&mut self, at: usize) -> Result<Set> {
        let negated = self.eat("^");
        let name: String = self.chars[self.at..].iter().take_while(|c| c.is_ascii_lowercase()).collect();
        self.at += name.len();
        let by_unicode: &[&str] = match name.as_str() {
            "alpha" => &["Alphabetic"],
            "digit" => &["Nd"],
            "alnum" => &["Alphabetic", "Nd"],
            "upper" => &["Uppercase"],
            "lower" => &["Lowercase"],
            "space" => &["White_Space"],
            "xdigit" => &["ASCII_Hex_Digit"],
            "cntrl" => &["Cc"],
            _ => return Err(self.refuse(at, format!("the class [:{name}:]"))),
        };
        if !self.eat(":]") {
            return Err(self.refuse(at, "a [: without its :]"));
        }
        let mut set = Set::default();
        for name in by_unicode {
            set = set.union(&Set::of(ranges(name, VERSION)?));
        }
        if !self.is_oniguruma() {
            set = set.intersection(&Set::of(&[(0, 0x7f)]));
        }
        self.cased_class(if negated { set.negated() } else { set }, at)
    }

    // ======================== escapes ========================

    /// What the backslash at `at`, which has been read, makes of what follows.
    fn escape(&mut self, at: usize, in_class: bool) -> Result<Escape> {
        let Some(c) = self.next() else { return Err(self.refuse(at, "a \\ at the end")) };
        let boundary = |negated| -> Result<Escape> {
            Ok(Escape::Assertion(Node::WordBoundary { word: self.word(false)?, negated, at }))
        };
        let end = || Node::Next { set: Set::default(), end: true };
        Ok(match c {
            't' => Escape::Char('\t'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            'f' => Escape::Char('\x0c'),
            'v' => Escape::Char('\x0b'),
            'a' => Escape::Char('\x07'),
            'e' => Escape::Char('\x1b'),
            'x' | 'u' => Escape::Char(self.hexadecimal(c, at)?),
            's' => Escape::Class(Set::of(ranges("White_Space", VERSION)?)),
            'S' => Escape::Class(Set::of(ranges("White_Space", VERSION)?).negated()),
            'd' => Escape::Class(Set::of(ranges("Nd", VERSION)?)),
            'D' => Escape::Class(Set::of(ranges("Nd", VERSION)?).negated()),
            'w' => Escape::Class(self.word(in_class)?),
            'W' => Escape::Class(self.word(in_class)?.negated()),
            'h' => Escape::Class(Set::of(ranges("ASCII_Hex_Digit", VERSION)?)),
            'H' => Escape::Class(Set::of(ranges("ASCII_Hex_Digit", VERSION)?).negated()),
            'p' | 'P' => Escape::Class(self.property(c == 'P', at)?),
            'b' if !in_class => boundary(false)?,
            'B' if !in_class => boundary(true)?,
            'A' => Escape::Assertion(Node::Start { line: false, at }),
            'z' => Escape::Assertion(end()),
            'Z' => {
                let newline = Box::new(Node::Set(Set::char('\n')));
                let max = self.is_oniguruma().then_some(1);
                let newlines = Node::Repeat { node: newline, min: 0, max, greed: Greed::Greedy, at };
                let node = Box::new(Node::Cat(vec![newlines, end()]));
                Escape::Assertion(Node::Look { node, behind: false, negated: false, at })
            }
            '0'..='9' | 'k' | 'g' => return Err(self.refuse(at, format!("the back-reference \\{c}"))),
            '<' | '>' if !self.is_oniguruma() => return Err(self.refuse(at, format!("\\{c}"))),
            _ if c.is_ascii() && !c.is_ascii_alphanumeric() => Escape::Char(c),
            _ => return Err(self.refuse(at, format!("\\{c}"))),
        })
    }

    /// Oniguruma has some fractions and raised numbers among them, but not inside a class in brackets.
    fn word(&self, in_class: bool) -> Result<Set> {
        let word = Set::of(ranges("Word", VERSION)?);
        if !self.is_oniguruma() {
            return Ok(word);
        }
        let fractions = if in_class { Set::default() } else { Set::of(&[(0xb2, 0xb3), (0xb9, 0xb9), (0xbc, 0xbe)]) };
        Ok(word.union(&fractions).intersection(&Set::of(&[(0x200c, 0x200d)]).negated()))
    }

    /// `\xHH`, `\x{H…}`, `\uHHHH` or, in tiktoken's syntax, `\u{H…}`.
    fn hexadecimal(&mut self, kind: char, at: usize) -> Result<char> {
        let braces = (kind == 'x' || !self.is_oniguruma()) && self.eat("{");
        let most = match (braces, kind) {
            (true, _) => 6,
            (false, 'x') => 2,
            _ => 4,
        };
        let digits: String = self.chars[self.at..].iter().take(most).take_while(|c| c.is_ascii_hexdigit()).collect();
        self.at += digits.len();
        let whole = if braces { self.eat("}") } else { digits.len() == most };
        let found = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).filter(|_| whole);
        match found {
            Some(c) if braces || kind == 'u' || c.is_ascii() || !self.is_oniguruma() => Ok(c),
            Some(_) => Err(self.refuse(at, "\\x of a byte outside ASCII (write \\x{…} for the character)")),
            None => Err(self.refuse(at, format!("\\{kind} without the number of a character"))),
        }
    }

    /// `\p{Name}`, `\p{^Name}`; in tiktoken's syntax `\pL`, `\p{gc=Name}` and `\p{sc=Name}` too.
    fn property(&mut self, mut negated: bool, at: usize) -> Result<Set> {
        let name: String = if self.eat("{") {
            let name: String = self.chars[self.at..].iter().take_while(|&&c| c != '}').collect();
            self.at += name.chars().count();
            if !self.eat("}") {
                return Err(self.refuse(at, "\\p{ without its }"));
            }
            name
        } else {
            self.next()
                .filter(|c| c.is_ascii_alphabetic() && !self.is_oniguruma())
                .map(String::from)
                .unwrap_or_default()
        };
        let mut wanted = name.as_str();
        if self.is_oniguruma() {
            negated ^= wanted.starts_with('^');
            wanted = wanted.trim_start_matches('^');
        } else {
            for prefix in ["gc=", "general_category=", "sc=", "script="] {
                if wanted.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix)) {
                    wanted = &wanted[prefix.len()..];
                }
            }
        }
        let Some(ranges) = ranges_by_any_name(wanted) else {
            let what = format!("the class \\p{{{name}}} (there are the categories, the scripts and a few properties)");
            return Err(self.refuse(at, what));
        };
        let set = Set::of(ranges);
        Ok(if negated { set.negated() } else { set })
    }
}

/// Whether some character is the same as these two in a row, but for its case: ﬀ, ﬁ, ﬂ, ﬅ, ß and others.
fn is_folded_pair(first: char, second: char) -> bool {
    let (first, second) = (first.to_ascii_lowercase(), second.to_ascii_lowercase());
    !first.is_ascii() || !second.is_ascii() || matches!((first, second), ('f', 'f' | 'i' | 'l') | ('s', 's' | 't'))
}

/// An expression, cut off where it is long.
pub fn shown(text: &str) -> String {
    match text.char_indices().nth(120) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
