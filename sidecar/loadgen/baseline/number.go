package baseline

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// decimal matches a number in a file: no sign, no hexadecimal, no names of infinities.
var decimal = regexp.MustCompile(`^[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$`)

var errNotDecimal = errors.New("not a decimal number")

// parseShifted reads a decimal number and moves its point by shift places. The
// text is moved, not the value, so that 446.5 ms is exactly the float64 0.4465.
func parseShifted(text string, shift int) (float64, error) {
	if !decimal.MatchString(text) {
		return 0, errNotDecimal
	}
	return parseMoved(text, shift)
}

func parseMoved(text string, shift int) (float64, error) {
	return strconv.ParseFloat(moved(text, shift), 64)
}

// moved returns the decimal text times 10^shift.
func moved(text string, shift int) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	e, _ := strconv.Atoi(exponent) // no exponent counts as 0
	return fmt.Sprintf("%se%d", mantissa, e+shift)
}

// formatShifted is the inverse of [parseShifted] with the same shift: reading
// its text gives v again, bit by bit.
func formatShifted(v float64, shift int) string {
	exact := moved(strconv.FormatFloat(v, 'e', -1, 64), -shift)
	if near, err := strconv.ParseFloat(exact, 64); err == nil {
		plain := strconv.FormatFloat(near, 'f', -1, 64)
		if back, err := parseMoved(plain, shift); err == nil && back == v && len(plain) <= 24 {
			return plain
		}
	}
	return exact
}
