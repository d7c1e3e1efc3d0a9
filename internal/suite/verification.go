package suite

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

// pageHeading is the beginning of docs/verification.md.
const pageHeading = `# Verification

` + "`go tool mage verify`" + ` checks what the gate, ` + "`go tool mage test`" + `, leaves out, and writes this table. A row is a part,
as it ended last; ` + "`go tool mage verify PART`" + ` runs it alone and prints all of its figures.

| part | what is checked | result | figures | date |
|---|---|---|---|---|
`

// earlier is the heading that ends the table. The text below it is written by hand.
const earlier = "\n## Earlier parts\n"

// rowPattern matches a row of the page and captures the part's name.
var rowPattern = regexp.MustCompile(`(?m)^\| ([^|]+?) \|.*\|$`)

// versionPattern matches a line below the table, and captures the day of its versions.
var versionPattern = regexp.MustCompile(`(?m)^- (\d{4}-\d\d-\d\d): .*$`)

// WriteVerification writes one row for each result to the page file, in the order of all. It keeps the rows of parts
// without a result, and the text below the table. versions names the programs that the parts used, with their versions:
// the page has them once for each day that a row is of.
func WriteVerification(file string, all []Part, results []Result, when time.Time, versions string) error {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	table, below, _ := strings.Cut(string(text), earlier)
	rows, days := byKey(rowPattern, table), byKey(versionPattern, table)
	day := when.Format(time.DateOnly)
	days[day] = "- " + day + ": " + versions + "."
	for _, r := range results {
		cells := []string{r.Name, r.Checks, describe(r), figures(r), day}
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(c, "|", "\\|")
		}
		rows[r.Name] = "| " + strings.Join(cells, " | ") + " |"
	}
	var page strings.Builder
	page.WriteString(pageHeading)
	for _, p := range all {
		if rows[p.Name] != "" {
			page.WriteString(rows[p.Name] + "\n")
		}
	}
	page.WriteString("\n")
	shown := page.String()
	for _, day := range slices.Sorted(maps.Keys(days)) {
		if strings.Contains(shown, "| "+day+" |\n") {
			page.WriteString(days[day] + "\n")
		}
	}
	if below != "" {
		page.WriteString(earlier + below)
	}
	return os.WriteFile(file, []byte(page.String()), 0o644)
}

// byKey returns the lines of a text that match, by what the pattern captures.
func byKey(pattern *regexp.Regexp, text string) map[string]string {
	lines := map[string]string{}
	for _, match := range pattern.FindAllStringSubmatch(text, -1) {
		lines[match[1]] = match[0]
	}
	return lines
}

// describe returns the cell with the result of a part.
func describe(r Result) string {
	text := fmt.Sprintf("%d passed", r.Passed)
	if r.Failed > 0 {
		text += fmt.Sprintf(", %d failed", r.Failed)
	}
	if r.Skipped > 0 {
		text += fmt.Sprintf(", %d skipped", r.Skipped)
	}
	text += " in " + clock(r.Took)
	if len(r.Skips) > 0 {
		text += " (" + strings.Join(r.Skips, "; ") + ")"
	}
	if r.Err != nil {
		text = "**FAILED**: " + text
	}
	return text
}

// figures lists the figures that represent the part.
func figures(r Result) string {
	var lines []string
	for _, f := range r.Figures {
		if f.Page {
			lines = append(lines, f.Text)
		}
	}
	return strings.Join(lines, "; ")
}
