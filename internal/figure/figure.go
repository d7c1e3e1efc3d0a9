// Package figure records what tests measure, for the suite and for docs/verification.md.
package figure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Variable names the environment variable with the file that [Report] and [Headline] append to.
const Variable = "SUITE_FIGURES"

// Figure is one measured result as text with its unit.
type Figure struct {
	Test string `json:"test"`
	Text string `json:"text"`
	Page bool   `json:"page,omitempty"` // it belongs on docs/verification.md
}

// Report logs a measured result of a test, which a run of the suite prints.
func Report(t testing.TB, format string, args ...any) {
	t.Helper()
	record(t, Figure{Test: t.Name(), Text: fmt.Sprintf(format, args...)})
}

// Headline is Report for one of the few figures that represent the part on docs/verification.md.
func Headline(t testing.TB, format string, args ...any) {
	t.Helper()
	record(t, Figure{Test: t.Name(), Text: fmt.Sprintf(format, args...), Page: true})
}

func record(t testing.TB, f Figure) {
	t.Helper()
	t.Log(f.Text)
	name := os.Getenv(Variable)
	if name == "" {
		return
	}
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(append(line, '\n')); err != nil { // in one write, since several processes append
		t.Fatal(err)
	}
}

// Read returns the figures in a file, or none if it does not exist.
func Read(name string) []Figure {
	file, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer file.Close()
	var figures []Figure
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var f Figure
		if json.Unmarshal(lines.Bytes(), &f) == nil {
			figures = append(figures, f)
		}
	}
	return figures
}
