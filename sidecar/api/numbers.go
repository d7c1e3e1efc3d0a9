package api

import (
	"math"
	"strconv"
	"strings"
)

// Number writes a number with this many decimals and with a comma every three digits. A number that rounds to 0 has no
// sign.
func Number(v float64, decimals int) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', decimals, 64), ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if v < 0 && !IsZero(whole) {
		return "−" + whole
	}
	return whole
}

// IsZero reports whether a written number has rounded to 0. The size of a difference that has takes no word such as
// "sooner".
func IsZero(number string) bool { return !strings.ContainsAny(number, "123456789") }

// Count writes a whole number with a comma every three digits.
func Count[T ~int | ~int64](n T) string { return Number(float64(n), 0) }

// Signed writes a number as [Number] does, with its sign also where it is positive.
func Signed(v float64, decimals int) string {
	text := Number(v, decimals)
	if v > 0 && !IsZero(text) {
		return "+" + text
	}
	return text
}

// InMS writes seconds in milliseconds, without the unit: with one decimal below 100 ms, and with none above.
func InMS(seconds float64) string {
	ms := 1000 * seconds
	if math.Abs(ms) < 100 {
		return Number(ms, 1)
	}
	return Number(ms, 0)
}

// Milliseconds writes seconds as [InMS] does, with the unit.
func Milliseconds(seconds float64) string { return InMS(seconds) + " ms" }

// Plain writes a number with the decimals that it has, at most six.
func Plain(v float64) string {
	v = math.Round(1e6*v) / 1e6
	_, fraction, _ := strings.Cut(strconv.FormatFloat(v, 'f', -1, 64), ".")
	return Number(v, len(fraction))
}

// Objective writes an objective in seconds, which is a setting, in milliseconds with the decimals that it has.
func Objective(seconds float64) string { return Plain(1000*seconds) + " ms" }

// Percent writes a ratio as per cent with one decimal.
func Percent(ratio float64) string { return Number(100*ratio, 1) + " %" }
