// Package figure carries what tests measure to docs/verification.md.
package figure

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// Variable names the environment variable with the file that Report appends to.
const Variable = "SUITE_FIGURES"

// Figure is one measured result in words, with its unit.
type Figure struct {
	Test string `json:"test"`
	Text string `json:"text"`
}

// Report logs a measured result of a test and, in a run of the suite, keeps it for docs/verification.md.
func Report(t testing.TB, format string, args ...any) {
	t.Helper()
	f := Figure{Test: t.Name(), Text: fmt.Sprintf(format, args...)}
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
	if _, err := file.Write(append(line, '\n')); err != nil { // one write: several processes append
		t.Fatal(err)
	}
}

// Read returns the figures that tests have appended to a file, none where it does not exist.
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
