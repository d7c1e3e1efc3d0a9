package api

import (
	"regexp"
	"strings"
)

// A spreadsheet interprets text that begins with one of these characters as a formula. The last four are the full-width
// forms, which some spreadsheets read as the plain ones.
const formula = `[=+\-@＝＋－＠]`

var (
	beginsFormula = regexp.MustCompile(`^([\t\r\n]|[\s\x{a0}]*` + formula + `)`)
	// innerFormula matches a formula after a character that another reader of the file may take as a separator.
	innerFormula = regexp.MustCompile(`([;|\t\r\n][\s\x{a0}]*)(` + formula + `)`)
	plainNumber  = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
)

// CSVText returns the text of a cell of a CSV or TSV file, for text of a target, a cluster or a file of another
// program. It inserts an apostrophe before anything that a spreadsheet would interpret as a formula, and before a tab
// or a line break at the beginning. A number, such as -5, is unchanged.
func CSVText(s string) string {
	plain := s == "" || '0' <= s[0] && s[0] <= '9' || 'a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z'
	if plain && !strings.ContainsAny(s, ";|\t\r\n") || plainNumber.MatchString(s) { // nearly all cells of a long table
		return s
	}
	s = innerFormula.ReplaceAllString(s, "$1'$2")
	if beginsFormula.MatchString(s) {
		s = "'" + s
	}
	return s
}

// plainText is the inverse of [CSVText].
func plainText(cell string) string {
	if name, ok := strings.CutPrefix(cell, "'"); ok && beginsFormula.MatchString(name) {
		return name
	}
	return cell
}
