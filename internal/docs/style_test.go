package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// maxLine is the number of characters that a line of code has at most; maxSubject is that of a commit's subject.
const (
	maxLine    = 120
	maxSubject = 72
)

// styleSince is the first commit whose successors keep the rules for subjects.
const styleSince = "c3eb6053"

var (
	// peopleWords are verbs and pronouns of people, which say less of a program than a technical term does.
	peopleWords = regexp.MustCompile(`(?i)\b(nobody|somebody|everybody|whoever|hears?|heard|tells?|told|bury|buried|` +
		`sings?|heed|knocks?|dead|alive|mouths?|aside|foretold|untold)\b`)
	// technicalTerms contain one of these words and are the field's own.
	technicalTerms = regexp.MustCompile(`(?i)keep-?alive|dead[ -](code|letter|lock)|http\.NoBody|</?aside`)
	checked        = regexp.MustCompile(`\.(go|ts|tsx|mjs|md|yaml|css)$`)
	code120        = regexp.MustCompile(`\.(go|ts|tsx|mjs)$`)
)

// unchecked are files that others wrote, that programs generate, or that name the words.
var unchecked = []string{
	".config/", "sidecar/loadgen/corpus/starters/", "sidecar/loadgen/corpus/questioner.go",
	"sidecar/booth/httpd/answer/articles/", "src/client/schema.ts", "internal/docs/style_test.go", "CONTRIBUTING.md",
}

// Text of the project uses technical terms, and lines of code stay short, except those with raw strings and struct tags.
// CONTRIBUTING.md has the rules.
func TestStyle(t *testing.T) {
	for _, path := range tracked(t) {
		isUnchecked := func(prefix string) bool { return strings.HasPrefix(path, prefix) }
		if !checked.MatchString(path) || slices.ContainsFunc(unchecked, isUnchecked) || strings.Contains(path, "/testdata/") {
			continue
		}
		text := content(t, path)
		raw := rawLines(t, path, text)
		for i, line := range strings.Split(text, "\n") {
			at := fmt.Sprintf("%s:%d", path, i+1)
			// Few lines have a word, and removing the terms from all of them takes ten times as long.
			if peopleWords.MatchString(line) {
				word := peopleWords.FindString(technicalTerms.ReplaceAllString(line, ""))
				assert.Empty(t, word, "%s: a word for people; write what the program does", at)
			}
			if n := utf8.RuneCountInString(line); n > maxLine && code120.MatchString(path) && !raw[i+1] {
				assert.Fail(t, "a long line", "%s: %d characters; a line has at most %d", at, n, maxLine)
			}
		}
	}
}

// rawLines returns the lines of a Go file that contain raw strings, struct tags included. They have no form in which
// they could be wrapped.
func rawLines(t *testing.T, path, text string) map[int]bool {
	lines := map[int]bool{}
	if filepath.Ext(path) != ".go" {
		return lines
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(literal.Value, "`") {
			for line := files.Position(literal.Pos()).Line; line <= files.Position(literal.End()).Line; line++ {
				lines[line] = true
			}
		}
		return true
	})
	return lines
}

// A commit's subject fits on a line of a log.
func TestCommitSubjects(t *testing.T) {
	log := exec.CommandContext(t.Context(), "git", "log", "--format=%h %s", styleSince+"..HEAD")
	log.Dir = root
	out, err := log.Output()
	if err != nil {
		t.Skipf("this clone lacks the history since %s; git fetch --unshallow brings it", styleSince)
	}
	for line := range strings.Lines(string(out)) {
		hash, subject, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.LessOrEqual(t, utf8.RuneCountInString(subject), maxSubject, "%s: %s", hash, subject)
	}
}
