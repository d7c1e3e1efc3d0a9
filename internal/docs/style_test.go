package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// linesPending are the folders and files that still have longer lines.
var linesPending = []string{
	"dashboards/",
	"internal/chart/",
	"sidecar/api/",
	"sidecar/booth/doctor/",
	"sidecar/booth/httpd/",
	"sidecar/cmd/booth/",
	"sidecar/cmd/loadgen/",
	"sidecar/loadgen/baseline/",
	"sidecar/loadgen/chat/",
	"sidecar/loadgen/cluster/",
	"sidecar/loadgen/corpus/",
	"sidecar/loadgen/report/",
	"sidecar/loadgen/server/",
	"sidecar/test/kubernetes/",
	"sidecar/test/sweeps/",
	"src/components/",
	"src/config/",
	"src/grafana/",
	"src/lib/",
	"src/pages/",
	"tests/browser/",
	"tools/mutate/",
}

// unchecked are files that others wrote, that programs generate, or that name the words.
var unchecked = []string{
	".config/", "sidecar/loadgen/corpus/starters/", "sidecar/loadgen/corpus/questioner.go",
	"sidecar/booth/httpd/answer/articles/", "src/client/schema.ts", "internal/docs/style_test.go", "CONTRIBUTING.md",
}

// Text of the project uses technical terms, and lines of code stay short. CONTRIBUTING.md has the rules.
func TestStyle(t *testing.T) {
	findings := map[string]int{} // by folder of linesPending
	for _, path := range tracked(t) {
		if !checked.MatchString(path) || within(path, unchecked) != "" || strings.Contains(path, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		for i, line := range strings.Split(string(text), "\n") {
			at := fmt.Sprintf("%s:%d", path, i+1)
			if word := peopleWords.FindString(technicalTerms.ReplaceAllString(line, "")); word != "" {
				assert.Fail(t, "a word for people", "%s: %q; write what the program does", at, word)
			}
			if n := utf8.RuneCountInString(line); n > maxLine && code120.MatchString(path) {
				pending := within(path, linesPending)
				findings[pending]++
				assert.NotEmpty(t, pending, "%s: %d characters; a line has at most %d", at, n, maxLine)
			}
		}
	}
	for _, folder := range linesPending {
		assert.NotZero(t, findings[folder], "%s has no long line any more; delete it from linesPending", folder)
	}
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

// within returns the longest prefix of the path in a list, or "".
func within(path string, prefixes []string) string {
	longest := ""
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	return longest
}
