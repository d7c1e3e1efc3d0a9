package suite

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"
)

// pageHeading is the beginning of docs/verification.md.
const pageHeading = `# Verification

` + "`go tool mage verify`" + ` checks what the gate, ` + "`go tool mage test`" +
	`, leaves out, and writes this page. A row is
one part, as it ended the last time that it ran: ` + "`go tool mage verify PART`" + ` runs it alone.

| part | capability | what is checked | result | figures | date | versions |
|---|---|---|---|---|---|---|
`

// earlier is the heading that ends the table. The text below it is written by hand.
const earlier = "\n## Earlier parts\n"

// rowPattern matches a row of the page and captures the part's name.
var rowPattern = regexp.MustCompile(`(?m)^\| ([^|]+?) \|.*\|$`)

// WriteVerification writes one row for each result to the page file, in the order of all. It keeps the rows of parts
// without a result, and the text below the table. versions names the programs that the parts used, with their versions.
func WriteVerification(file string, all []Part, results []Result, when time.Time, versions string) error {
	rows := map[string]string{}
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	for _, match := range rowPattern.FindAllStringSubmatch(string(text), -1) {
		rows[match[1]] = match[0]
	}
	for _, r := range results {
		cells := []string{r.Name, r.Capability, r.Checks, describe(r), figures(r), when.Format(time.DateOnly), versions}
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
	if _, below, ok := strings.Cut(string(text), earlier); ok {
		page.WriteString(earlier + below)
	}
	return os.WriteFile(file, []byte(page.String()), 0o644)
}

// describe returns the cell with the result of a part.
func describe(r Result) string {
	text := fmt.Sprintf("%s in %s", r.Count, clock(r.Took))
	if len(r.Skips) > 0 {
		text += " (" + strings.Join(r.Skips, "; ") + ")"
	}
	if r.Err != nil {
		text = "**FAILED**: " + text
	}
	return text
}

// figures lists what the part's tests measured.
func figures(r Result) string {
	var lines []string
	for _, f := range r.Figures {
		lines = append(lines, f.Text)
	}
	return strings.Join(lines, "; ")
}
