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

// ReportsVariable names the environment variable with the folder for the JUnit reports of other runners that a test
// runs. Their tests are counted too.
const ReportsVariable = "SUITE_REPORTS"

// Formats of [GoTest]: a line per package with the output of its failed tests, or all output immediately, for long
// tests.
const (
	Brief = "pkgname"
	Live  = "standard-verbose"
)

// GoTest runs go test with the arguments through gotestsum, in one of the formats. It does not run vet, which the
// linters run with all tags: go test would first analyze all dependencies of the tests, once for each kind of build.
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
	module := filepath.Join(root, "tools", "gotestsum", "go.mod") // a module of its own keeps it out of this go.mod
	run := []string{
		"tool", "-modfile=" + module, "gotestsum", "--format=" + format, "--junitfile=" + filepath.Join(dir, goReport),
	}
	if format == Live {
		run = append(run, "--hide-summary=output") // the output of failed tests was printed already
	}
	cmd := command(ctx, "go", append(append(run, "--", "-vet=off"), args...)...)
	figuresFile := filepath.Join(dir, "figures.jsonl")
	cmd.Stdout = os.Stdout
	cmd.Env = append(os.Environ(), ReportsVariable+"="+dir, figure.Variable+"="+figuresFile)
	if format == Brief { // the others start programs whose memory is measured
		cmd.Env = append(cmd.Env, collectLess)
	}
	ran := cmd.Run()
	count, err := counted(dir)
	count.Figures = figure.Read(figuresFile)
	if format == Brief { // which hides the logs of tests that pass
		for _, f := range count.Figures {
			fmt.Printf("%s: %s\n", f.Test, f.Text)
		}
	}
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
	Error   *string `xml:"error"` // Playwright's, for failures without an assertion
	Skipped *struct {
		Message string `xml:"message,attr"`
	} `xml:"skipped"`
}

// output returns the output of a failed test, or nil.
func (c testCase) output() *string { return cmp.Or(c.Failure, c.Error) }

// countOf counts tests of go test or of another runner. A Go test that failed because of its subtests is counted, but
// only the subtests are named.
func countOf(cases []testCase, ofGo bool) (count Count) {
	for _, c := range cases {
		switch output := c.output(); {
		case output != nil:
			count.Failed++
			isPart := func(other testCase) bool {
				return ofGo && other.output() != nil && other.Class == c.Class && strings.HasPrefix(other.Name, c.Name+"/")
			}
			if slices.ContainsFunc(cases, isPart) {
				continue
			}
			name := c.Class + " › " + c.Name
			if ofGo {
				name = path.Base(c.Class) + " " + c.Name
			}
			count.Failures = append(count.Failures, Failure{name, beginning(*output)})
		case c.Skipped != nil:
			count.add(Count{Skipped: 1, Skips: reasons(c.Skipped.Message)})
		default:
			count.Passed++
		}
	}
	return count
}

// skipReason matches the reason of a skipped test in the format of package testing.
var skipReason = regexp.MustCompile(`(?m)^ *[\w-]+\.go:\d+: (?:skipped: )?(.+)$`)

// reasons returns the last reason in the output of a skipped test, or none.
func reasons(output string) []string {
	all := skipReason.FindAllStringSubmatch(output, -1)
	if len(all) == 0 {
		return nil
	}
	return []string{all[len(all)-1][1]}
}

// failureLines is the number of lines of a failed test that the end of the output repeats.
const failureLines = 16

// colors matches the color codes in Playwright's messages.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// errorLine matches an error in the format of package testing, among other output of a test and its processes.
var errorLine = regexp.MustCompile(`(?m)^ *[\w-]+\.go:\d+: `)

// beginning returns the first lines of a failed test's output, each on an indented line of its own. It begins with the
// first error of package testing, if there is one.
func beginning(text string) string {
	if at := errorLine.FindStringIndex(text); at != nil {
		text = text[at[0]:]
	}
	var lines strings.Builder
	n := 0
	for line := range strings.Lines(colors.ReplaceAllString(text, "")) {
		if line = strings.TrimRight(line, " \t\r\n"); line == "" {
			continue
		}
		if n++; n > failureLines {
			break
		}
		lines.WriteString("\n    " + line)
	}
	return lines.String()
}
