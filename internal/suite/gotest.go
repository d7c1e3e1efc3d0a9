package suite

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"kvbooth/internal/source"
)

// ReportsVariable names the environment variable with the folder into which a test
// that runs another runner has it write its JUnit reports: they count, too.
const ReportsVariable = "SUITE_REPORTS"

// Formats of [GoTest]: a line for each package, with all that its failed tests
// wrote, or everything as it comes, for tests that take their time.
const (
	Brief = "pkgname"
	Live  = "standard-verbose"
)

// GoTest runs go test with the arguments under gotestsum, in one of the formats.
func GoTest(ctx context.Context, format string, args ...string) (Count, error) {
	root, err := source.Root()
	if err != nil {
		return Count{}, err
	}
	dir, err := os.MkdirTemp("", "kvbooth-reports-")
	if err != nil {
		return Count{}, err
	}
	defer os.RemoveAll(dir)
	module := filepath.Join(root, "tools", "gotestsum", "go.mod") // keeps it out of our own go.mod
	cmd := command(ctx, "go", append([]string{
		"tool", "-modfile=" + module, "gotestsum", "--format=" + format, "--junitfile=" + filepath.Join(dir, "go.xml"), "--",
	}, args...)...)
	cmd.Stdout, cmd.Env = os.Stdout, append(os.Environ(), ReportsVariable+"="+dir)
	ran := cmd.Run()
	count, err := counted(dir)
	if ran != nil {
		ran = fmt.Errorf("go test: %w", ran)
	}
	return count, errors.Join(ran, err)
}

// counted adds up the JUnit reports in a folder.
func counted(dir string) (Count, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.xml"))
	if err != nil {
		return Count{}, err
	}
	var total Count
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return total, err
		}
		var report struct {
			Cases []struct {
				Name    string    `xml:"name,attr"`
				Class   string    `xml:"classname,attr"`
				Failure *string   `xml:"failure"`
				Error   *string   `xml:"error"` // Playwright's, of what is no assertion
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testsuite>testcase"`
		}
		if err := xml.Unmarshal(text, &report); err != nil {
			return total, fmt.Errorf("%s: %w", file, err)
		}
		for _, c := range report.Cases {
			switch said := cmp.Or(c.Failure, c.Error); {
			case said != nil:
				total.Failed++
				total.Failures = append(total.Failures, c.Class+": "+c.Name+beginning(*said))
			case c.Skipped != nil:
				total.Skipped++
			default:
				total.Passed++
			}
		}
	}
	return total, nil
}

// saidOfFailure is how many lines of a failed test the end of the output repeats.
const saidOfFailure = 16

// colours are what Playwright paints its messages with.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// beginning gives the first lines of what a failed test said, each on a line of its
// own and indented.
func beginning(text string) string {
	var lines strings.Builder
	n := 0
	for line := range strings.Lines(colours.ReplaceAllString(text, "")) {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			continue
		}
		if n++; n > saidOfFailure {
			break
		}
		lines.WriteString("\n    " + line)
	}
	return lines.String()
}
