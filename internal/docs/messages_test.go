package docs

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const troubleshoot = "docs/troubleshoot.md"

// message is a text in backticks in the first cell of a row of docs/troubleshoot.md.
type message struct {
	text string
	line int
}

var (
	verb    = regexp.MustCompile(`%[-+# 0]*[\d.*]*[a-zA-Z]`)
	dots    = regexp.MustCompile(`…(?:\s*…)*`)
	first   = regexp.MustCompile("^\\| ((?:`[^`]+`(?:, )?)+) \\| .*\\|$")
	joined  = regexp.MustCompile(`['"` + "`" + `]\s*\+\s*['"` + "`" + `]`)
	braces  = regexp.MustCompile(`\$?\{[^{}]*\}`)
	element = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
)

// plain replaces every value of a message by …, as rows do.
func plain(text string) string {
	if strings.Contains(text, "%") {
		text = strings.ReplaceAll(verb.ReplaceAllString(text, "…"), "%%", "%")
	}
	if strings.Contains(text, "…") {
		text = dots.ReplaceAllString(text, "…")
	}
	return strings.Join(strings.Fields(text), " ")
}

// core returns a message without the values at its ends.
func core(text string) string { return strings.Trim(plain(text), "… :;,.") }

// rows returns the messages that docs/troubleshoot.md explains.
func rows(t *testing.T) (all []message) {
	t.Helper()
	for i, line := range strings.Split(content(t, troubleshoot), "\n") {
		if cell := first.FindStringSubmatch(line); cell != nil {
			for _, m := range span.FindAllStringSubmatch(cell[1], -1) {
				all = append(all, message{m[1], i + 1})
			}
		}
	}
	require.Greater(t, len(all), 60)
	return all
}

// literals returns the strings of a Go file: each concatenation with … for its values, and each of its parts.
func literals(file *ast.File) (all []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if e, ok := n.(ast.Expr); ok {
			if text, has := sum(e); has {
				all = append(all, plain(text))
			}
		}
		return true
	})
	return all
}

// sum concatenates the parts of an expression, and reports whether there is a string among them.
func sum(e ast.Expr) (text string, has bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ = strconv.Unquote(e.Value)
			return text, true
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			left, has := sum(e.X)
			right, also := sum(e.Y)
			return left + right, has || also
		}
	case *ast.ParenExpr:
		return sum(e.X)
	case *ast.CallExpr:
		if len(e.Args) > 0 {
			if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
				return sum(e.Args[0])
			}
		}
	}
	return "…", false
}

// sources returns the texts of the product: the strings of Go files, whole files of TypeScript with … for expressions
// in braces, and the alert rules.
func sources(t *testing.T) (all []string) {
	t.Helper()
	for _, path := range tracked(t, "pkg/*.go", "sidecar/*.go") {
		if !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, "sidecar/test/") {
			all = append(all, literals(parse(t, path))...)
		}
	}
	for _, path := range tracked(t, "src/*.ts", "src/*.tsx", "provisioning/alerting/*.yaml") {
		if strings.Contains(path, ".test.") || strings.HasPrefix(path, "src/test/") {
			continue
		}
		text := content(t, path)
		words := braces.ReplaceAllString(joined.ReplaceAllString(text, ""), "…")
		all = append(all, plain(text), plain(words), plain(element.ReplaceAllString(words, "")))
	}
	return all
}

// A reworded message needs a reworded row.
func TestExplainedMessagesAreInTheSource(t *testing.T) {
	all := sources(t)
	for _, m := range rows(t) {
		assert.GreaterOrEqual(t, len(core(m.text)), 8, "%s:%d: too short to be searched: %s", troubleshoot, m.line, m.text)
		wanted := core(m.text)
		there := slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, wanted) })
		assert.True(t, there, "%s:%d: no source has the message; was it reworded? %s", troubleshoot, m.line, m.text)
	}
}

// explained are the files whose strings of more than three words all need a row. The doctor needs none: each of its
// problems has a remedy beside it.
var explained = []string{"pkg/plugin/health.go", "pkg/plugin/problem.go"}

// unexplained are strings of these files that report no problem, are parts of other messages, or say what to do.
var unexplained = []string{
	"lane … is …, …", "with … conversations", "Load generator … answers at …", "…: …. Warning: …",
	"The load generator is healthy", "a call was refused", "writing the error response failed",
	"The Load generator URL is not set", "no load generator is configured yet",
	"; an administrator can see details with “Test connection” in the app's settings",
	// outlines, which this follows
	"the load generator is unreachable", "the load generator timed out", "the load generator is unhealthy",
	"the load generator's certificate is not trusted", "the load generator rejects the app's token",
	"the load generator rejects the host name in its URL", "the server is not a load generator, or its version",
	// a fault of the target or its metrics, whose own message follows
	"the target … of lane … …: …", "cluster metrics for lane … are unavailable",
}

func TestMessagesOfFilesAreExplained(t *testing.T) {
	have := rows(t)
	for _, path := range explained {
		for _, l := range literals(parse(t, path)) {
			isUnexplained := func(u string) bool { return strings.Contains(l, u) || core(u) == core(l) }
			if strings.Count(l, " ") < 3 || core(l) == "" || slices.ContainsFunc(unexplained, isUnexplained) {
				continue
			}
			there := slices.ContainsFunc(have, func(m message) bool {
				return strings.Contains(l, core(m.text)) || strings.Contains(plain(m.text), core(l))
			})
			assert.True(t, there, "%s has no row for a message of %s: %s", troubleshoot, path, l)
		}
	}
}
