package api

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNumbersHaveOneForm(t *testing.T) {
	for text, want := range map[string]string{
		Number(2317, 0):        "2,317",
		Number(-1234567.25, 1): "−1,234,567.2",
		Number(-.04, 1):        "0.0",
		Number(999.96, 1):      "1,000.0",
		Count(999):             "999",
		Signed(12.34, 1):       "+12.3",
		Signed(-12.34, 1):      "−12.3",
		Signed(.04, 1):         "0.0",
		Milliseconds(3.1434):   "3,143 ms",
		Milliseconds(.0712):    "71.2 ms",
		Milliseconds(-.0712):   "−71.2 ms",
		Objective(.0255):       "25.5 ms",
		Objective(1.2):         "1,200 ms",
		Percent(.9163):         "91.6 %",
	} {
		assert.Equal(t, want, text)
	}
}
