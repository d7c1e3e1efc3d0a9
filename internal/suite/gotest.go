package suite

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"kvbooth/internal/figure"
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

// GoTest runs go test with the arguments under gotestsum, in one of the formats. It leaves vet to the linters, which run
// it with all tags: go test would first analyze every package that the tests are made of, once for each kind of build.
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
	run := []string{"tool", "-modfile=" + module, "gotestsum", "--format=" + format, "--junitfile=" + filepath.Join(dir, goReport)}
	if format == Live {
		run = append(run, "--hide-summary=output") // it came already, with all that processes of the test wrote
	}
	cmd := command(ctx, "go", append(append(run, "--", "-vet=off"), args...)...)
	figuresFile := filepath.Join(dir, "figures.jsonl")
	cmd.Stdout = os.Stdout
	cmd.Env = append(os.Environ(), ReportsVariable+"="+dir, figure.Variable+"="+figuresFile)
	ran := cmd.Run()
	count, err := counted(dir)
	count.Figures = figure.Read(figuresFile)
	if ran != nil {
		ran = fmt.Errorf("go test: %w", ran)
	}
	return count, errors.Join(ran, err)
}

// goReport is the JUnit report of go test itself.
const goReport = "go.xml"

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
			Cases []testCase `xml:"testsuite>testcase"`
		}
		if err := xml.Unmarshal(text, &report); err != nil {
			return total, fmt.Errorf("%s: %w", file, err)
		}
		total.add(countOf(report.Cases, filepath.Base(file) == goReport))
	}
	return total, nil
}

// testCase is a test in a JUnit report.
type testCase struct {
	Name    string  `xml:"name,attr"`
	Class   string  `xml:"classname,attr"` // package or file
	Failure *string `xml:"failure"`
	Error   *string `xml:"error"` // Playwright's, of what is no assertion
	Skipped *struct {
		Message string `xml:"message,attr"`
	} `xml:"skipped"`
}

// said is what a failed test said, or nil.
func (c testCase) said() *string { return cmp.Or(c.Failure, c.Error) }

// countOf counts tests, of go test or of another runner. A test of Go that failed for
// its subtests' sake is counted, and they are named.
func countOf(cases []testCase, ofGo bool) (count Count) {
	for _, c := range cases {
		switch said := c.said(); {
		case said != nil:
			count.Failed++
			isPart := func(other testCase) bool {
				return ofGo && other.said() != nil && other.Class == c.Class && strings.HasPrefix(other.Name, c.Name+"/")
			}
			if slices.ContainsFunc(cases, isPart) {
				continue
			}
			name := c.Class + " › " + c.Name
			if ofGo {
				name = path.Base(c.Class) + " " + c.Name
			}
			count.Failures = append(count.Failures, Failure{name, beginning(*said)})
		case c.Skipped != nil:
			count.add(Count{Skipped: 1, Skips: reasons(c.Skipped.Message)})
		default:
			count.Passed++
		}
	}
	return count
}

// ofSkip is how package testing prints the reason of a skipped test.
var ofSkip = regexp.MustCompile(`(?m)^ *[\w-]+\.go:\d+: (?:skipped: )?(.+)$`)

// reasons are the last reason in the output of a skipped test, or none.
func reasons(output string) []string {
	all := ofSkip.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return nil
	}
	return []string{all[len(all)-1][1]}
}

// saidOfFailure is how many lines of a failed test the end of the output repeats.
const saidOfFailure = 16

// colours are what Playwright paints its messages with.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// ofTesting is what package testing writes of an error, beside what the test and its
// processes print.
var ofTesting = regexp.MustCompile(`(?m)^ *[\w-]+\.go:\d+: `)

// beginning gives the first lines of what a failed test said, each on a line of its
// own and indented: from the first error on, where package testing tells of one.
func beginning(text string) string {
	if at := ofTesting.FindStringIndex(text); at != nil {
		text = text[at[0]:]
	}
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
