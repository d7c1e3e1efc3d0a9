package bpe

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Pattern is the regular expression of cl100k_base that splits a text into pieces. Tokens are merged within a piece
// only. [next] finds the same pieces.
const Pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
	`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

// longestPiece bounds the time of one piece, which grows with the square of its length. Only a run of more than 1,024
// letters, blanks or signs is cut there, and its ids may then differ from those of another implementation.
const longestPiece = 1024

// Encode appends the ids of a text to a slice. Special tokens are text like any other. The first call takes some tens
// of milliseconds to read the vocabulary. Encode is safe for concurrent use, as all functions of the package are.
func Encode(ids []uint32, text string) []uint32 {
	v := loaded()
	if !utf8.ValidString(text) {
		text = string([]rune(text)) // U+FFFD for each invalid byte
	}
	for text != "" {
		n := next(text)
		piece := text[:n]
		text = text[n:]
		if id, ok := v.id(piece); ok {
			ids = append(ids, id)
			continue
		}
		for len(piece) > longestPiece {
			ids, piece = v.encode(ids, piece[:longestPiece]), piece[longestPiece:]
		}
		ids = v.encode(ids, piece)
	}
	return ids
}

// Count returns the number of tokens of a text.
func Count(text string) int { return len(Encode(make([]uint32, 0, len(text)/4), text)) }

// Leading returns the length in bytes of the first tokens of a text, or of the whole text if it has fewer. The last
// token may end within a character. Invalid UTF-8 makes the result imprecise.
func Leading(text string, tokens int) (n int) {
	ids := Encode(nil, text)
	for _, id := range ids[:min(len(ids), tokens)] {
		n += len(Token(id))
	}
	return min(n, len(text))
}

// Token returns the bytes of a token: incomplete characters where the token ends within one, and "" for an unknown id.
func Token(id uint32) string {
	if id >= Tokens {
		return ""
	}
	return loaded().token(id)
}

// Halves returns the two parts whose merge made a token of several bytes: those that remain when its bytes are merged
// by tokens with lower ids only.
func Halves(id uint32) (first, second string) {
	token := Token(id)
	half := loaded().merge(token, id)[1]
	return token[:half], token[half:]
}

func (v *vocabulary) encode(ids []uint32, piece string) []uint32 {
	offsets := v.merge(piece, noToken)
	for i := range len(offsets) - 1 {
		id, _ := v.id(piece[offsets[i]:offsets[i+1]]) // each byte is a token, and each merge makes one
		ids = append(ids, id)
	}
	return ids
}

// noToken is greater than every id.
const noToken = math.MaxUint32

// merge splits a piece into bytes and merges neighbors, always the leftmost pair that makes the token with the lowest
// id, as long as that id is below the limit. It returns the offsets of the parts and the end of the last part.
func (v *vocabulary) merge(piece string, limit uint32) []int {
	offsets := make([]int, len(piece)+1)
	merged := make([]uint32, len(piece)+1) // the token that part i and the next part make
	for i := range offsets {
		offsets[i] = i
	}
	update := func(i int) {
		merged[i] = noToken
		if i+2 >= len(offsets) {
			return
		}
		if id, ok := v.id(piece[offsets[i]:offsets[i+2]]); ok && id < limit {
			merged[i] = id
		}
	}
	for i := range merged {
		update(i)
	}
	for {
		least := slices.Min(merged)
		if least == noToken {
			return offsets
		}
		i := slices.Index(merged, least)
		offsets = slices.Delete(offsets, i+1, i+2)
		merged = slices.Delete(merged, i+1, i+2)
		update(i)
		if i > 0 {
			update(i - 1)
		}
	}
}

// next returns the length of the first piece of a text that is not empty. Each case is an alternative of [Pattern], in
// its order.
func next(text string) int {
	if n := contraction(text); n > 0 {
		return n
	}
	first, width := utf8.DecodeRuneInString(text)
	switch {
	case unicode.IsLetter(first):
		return run(text, unicode.IsLetter)
	case unicode.IsNumber(first):
		return numbers(text)
	}
	if first != '\r' && first != '\n' {
		if n := run(text[width:], unicode.IsLetter); n > 0 {
			return width + n
		}
	}
	blank := 0
	if first == ' ' {
		blank = 1
	}
	if n := run(text[blank:], isSign); n > 0 {
		n += blank
		return n + run(text[n:], isLineEnd)
	}
	blanks := run(text, unicode.IsSpace)
	if end := strings.LastIndexAny(text[:blanks], "\r\n"); end >= 0 {
		return end + 1
	}
	if _, last := utf8.DecodeLastRuneInString(text[:blanks]); blanks < len(text) && blanks > last {
		return blanks - last // the last one begins the next piece
	}
	return blanks
}

// contraction returns the length of the end of a contraction, such as 's or 'LL, 0 if the text does not begin with one.
func contraction(text string) int {
	if text[0] != '\'' {
		return 0
	}
	for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d"} {
		if len(text) > len(end) && strings.EqualFold(text[1:1+len(end)], end) {
			return 1 + len(end)
		}
	}
	return 0
}

// numbers returns the length of the first three numerals of a text, or fewer.
func numbers(text string) (n int) {
	for range 3 {
		r, width := utf8.DecodeRuneInString(text[n:])
		if !unicode.IsNumber(r) {
			break
		}
		n += width
	}
	return n
}

// run returns the length of the longest beginning of a text whose characters are all of a kind.
func run(text string, isOne func(rune) bool) int {
	for i, r := range text {
		if !isOne(r) {
			return i
		}
	}
	return len(text)
}

func isLineEnd(r rune) bool { return r == '\r' || r == '\n' }

func isSign(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
