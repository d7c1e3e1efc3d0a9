package docs

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const root = "../.."

// page is a document.
type page struct {
	path    string // in the repository, with slashes
	prose   string // without its code blocks
	code    []code // spans and lines of blocks
	anchors []string
}

// code is a span in backticks, or a line of a block with its continuation lines.
type code struct {
	text, at string // at is path:line
	block    bool
}

var (
	fence   = regexp.MustCompile("^ *```")
	span    = regexp.MustCompile("`([^`\n]+)`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`^#{1,6} +(.+?) *#*$`)
)

// content returns the text of a file of the repository.
func content(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	return string(text)
}

func read(t *testing.T, path string) page {
	t.Helper()
	p := page{path: path}
	fenced, before := false, ""
	lines := strings.Split(content(t, path), "\n")
	for i := 0; i < len(lines); i++ {
		line, at := lines[i], fmt.Sprintf("%s:%d", path, i+1)
		indented := strings.HasPrefix(line, "    ") && (strings.TrimSpace(before) == "" || strings.HasPrefix(before, "    "))
		switch {
		case fence.MatchString(line):
			fenced = !fenced
		case fenced || indented:
			for strings.HasSuffix(line, `\`) && i+1 < len(lines) {
				i++
				line = strings.TrimSuffix(line, `\`) + lines[i]
			}
			p.code = append(p.code, code{strings.TrimSpace(line), at, true})
		default:
			if row := strings.SplitN(line, "|", 3); path == otherTools && len(row) == 3 {
				line = row[2] // without the flags of the other program
			}
			p.prose += span.ReplaceAllString(line, "`") + "\n"
			for _, s := range span.FindAllStringSubmatch(line, -1) {
				p.code = append(p.code, code{s[1], at, false})
			}
			if h := heading.FindStringSubmatch(line); h != nil {
				p.anchors = append(p.anchors, anchor(h[1], p.anchors))
			}
		}
		before = lines[i]
	}
	return p
}

// anchor returns GitHub's anchor of a heading.
func anchor(heading string, taken []string) string {
	heading = link.ReplaceAllString(strings.ReplaceAll(heading, "[", ""), "")
	slug := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
	for n := 1; slices.Contains(taken, slug); n++ {
		slug = strings.TrimSuffix(slug, "-"+strconv.Itoa(n-1)) + "-" + strconv.Itoa(n)
	}
	return slug
}

// history also contains removed names. Only its links are checked.
const history = "CHANGELOG.md"

// otherTools has tables of two columns: the flags of another program, and those of the load generator in their place.
const otherTools = "docs/from-other-tools.md"

// pages returns the documents of the project without the texts of the corpus.
func pages(t *testing.T) []page {
	t.Helper()
	all := []page{}
	for _, path := range tracked(t, "*.md") {
		if dir := strings.Split(path, "/")[0]; dir != "sidecar" && dir != ".config" {
			p := read(t, path)
			if path == history {
				p.code = nil
			}
			all = append(all, p)
		}
	}
	require.Greater(t, len(all), 10)
	return all
}

// codes returns the code of all documents.
func codes(t *testing.T) (all []code) {
	t.Helper()
	for _, p := range pages(t) {
		all = append(all, p.code...)
	}
	return all
}

// tracked returns the existing files of the repository, with new ones that are not ignored.
func tracked(t *testing.T, patterns ...string) (paths []string) {
	t.Helper()
	list := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	git := exec.CommandContext(t.Context(), "git", list...)
	git.Dir = root
	out, err := git.Output()
	require.NoError(t, err)
	for path := range strings.Lines(string(out)) {
		path = strings.TrimSpace(path)
		if _, err := os.Stat(filepath.Join(root, path)); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}

func TestLinksHaveTargets(t *testing.T) {
	all := map[string]page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	links := 0
	for _, p := range all {
		for _, match := range link.FindAllStringSubmatch(p.prose, -1) {
			target := match[1]
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(target, "#")
			path := p.path
			if file != "" {
				path = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), file))
			}
			_, err := os.Stat(filepath.Join(root, path))
			if assert.NoError(t, err, "%s links to %s", p.path, target) && fragment != "" {
				assert.Contains(t, all[path].anchors, fragment, "%s links to %s", p.path, target)
			}
		}
	}
	assert.Greater(t, links, 30)
}

// programs are commands with their flags. Flags without a command are under "".
type programs map[string]map[string][]string

var (
	fieldRow  = regexp.MustCompile("(?m)^\\| `([a-z0-9_.]+)` \\|")
	secretRow = regexp.MustCompile("(?m)^\\| ((?:`[a-z0-9_.]+`(?:, )?)+) \\|")
	alias     = regexp.MustCompile("Alias: `(--[a-z-]+)`")
	ownRow    = regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| (`--.*) \\|$")
	dashed    = regexp.MustCompile(`--[a-z][a-z0-9-]*`)
	words     = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z][a-z])`)
)

// known reads the load generator's flags from the tables of CONFIGURATION.md, which a test of its configuration
// generates, and the flags of booth and the commands of both from their sources.
func known(t *testing.T) programs {
	t.Helper()
	text := content(t, "CONFIGURATION.md")
	loadgen, booth := map[string][]string{"": {"--help"}}, map[string][]string{"": {"--help"}}
	for _, command := range constants(t, "sidecar/cmd/loadgen/internal/config/config.go", "Command") {
		loadgen[command] = nil
	}
	flag := strings.NewReplacer(".", "-", "_", "-")
	settings, _ := fields(t)
	for _, name := range settings {
		loadgen[""] = append(loadgen[""], "--"+flag.Replace(name))
	}
	for _, match := range alias.FindAllStringSubmatch(text, -1) {
		loadgen[""] = append(loadgen[""], match[1])
	}
	for _, row := range ownRow.FindAllStringSubmatch(text, -1) {
		loadgen[row[1]] = append(loadgen[row[1]], dashed.FindAllString(row[2], -1)...)
	}
	types := structs(t, "sidecar/cmd/booth")
	for _, command := range types["commands"].Fields.List {
		booth[kebab(command.Names[0].Name)] = flags(types, types[command.Type.(*ast.Ident).Name], "")
	}
	require.Greater(t, len(loadgen[""]), 100)
	require.Contains(t, loadgen, "trial")
	require.Contains(t, booth["demo"], "--no-start")
	require.Contains(t, booth["cluster"], "--router-track-output-blocks")
	return programs{"loadgen": loadgen, "booth": booth}
}

// fields returns the names of the fields and of the secrets in the tables of CONFIGURATION.md.
func fields(t *testing.T) (settings, secrets []string) {
	t.Helper()
	_, tables, _ := strings.Cut(content(t, "CONFIGURATION.md"), "<!-- fields:")
	tables, _, _ = strings.Cut(tables, "### Flags of the commands")
	first, second, _ := strings.Cut(tables, "### Secrets")
	for _, row := range fieldRow.FindAllStringSubmatch(first, -1) {
		settings = append(settings, row[1])
	}
	for _, row := range secretRow.FindAllStringSubmatch(second, -1) {
		secrets = append(secrets, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", ")...)
	}
	return settings, secrets
}

// flags returns the flags that kong makes of a struct.
func flags(types map[string]*ast.StructType, s *ast.StructType, prefix string) (all []string) {
	for _, f := range s.Fields.List {
		tag := reflect.StructTag("")
		if f.Tag != nil {
			text, _ := strconv.Unquote(f.Tag.Value)
			tag = reflect.StructTag(text)
		}
		of, _ := f.Type.(*ast.StructType)
		if name, ok := f.Type.(*ast.Ident); ok && of == nil {
			of = types[name.Name]
		}
		if of != nil {
			all = append(all, flags(types, of, prefix+tag.Get("prefix"))...)
			continue
		}
		for _, name := range f.Names {
			flag := tag.Get("name")
			if flag == "" {
				flag = kebab(name.Name)
			}
			all = append(all, "--"+prefix+flag)
			if _, ok := tag.Lookup("negatable"); ok {
				all = append(all, "--no-"+prefix+flag)
			}
		}
	}
	return all
}

func kebab(name string) string {
	return strings.ToLower(words.ReplaceAllString(name, "$1$3-$2$4"))
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}

func constants(t *testing.T, path, of string) (values []string) {
	t.Helper()
	ast.Inspect(parse(t, path), func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && len(v.Values) == 1 {
			if name, ok := v.Type.(*ast.Ident); ok && name.Name == of {
				text, _ := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				values = append(values, text)
			}
		}
		return true
	})
	return values
}

func structs(t *testing.T, dir string) map[string]*ast.StructType {
	t.Helper()
	all := map[string]*ast.StructType{}
	for _, path := range tracked(t, dir+"/*.go") {
		ast.Inspect(parse(t, path), func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					all[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	return all
}

// foreign are flags of other programs that stand alone in backticks.
var foreign = []string{
	"--force-conflicts", "--dry-run", "--timeout", "--set", "--cacert", // helm, curl
	// AIPerf, vLLM, GuideLLM
	"--concurrency", "--use-server-token-count", "--max-concurrency", "--request-rate",
	"--metric-percentiles", "--percentile-metrics", "--save-result", "--metrics",
	// Dynamo and its engines
	"--router-mode", "--router-replica-sync", "--no-router-kv-events", "--publish-kv-events",
	"--publish-events-and-metrics", "--kv-events-config", "--enable-prompt-tokens-details", "--enable-cache-report",
	"--router-session-affinity-ttl-secs", "--active-prefill-tokens-threshold", "--router-queue-threshold",
	// other routers
	"--disable-circuit-breaker", "--balance-abs-threshold", "--worker-startup-check-interval", "--sticky-sessions",
	"--worker-urls", "--kv-event-source", "--session-key",
}

var (
	command = regexp.MustCompile(`^(?:\$ )?(?:[A-Z_]+=\S+ +)*(?:ExecStart=)?` +
		`(?:/usr/local/bin/|bin/)?(loadgen|booth)(?: (.*))?$`)
	cut      = regexp.MustCompile(` +(?:[|;#&]|>) ?.*$`)
	mage     = regexp.MustCompile(`go tool mage ([a-z]+(?::[a-z]+)?)`)
	variable = regexp.MustCompile(`\b(?:LOADGEN|KVBOOTH)_[A-Z0-9_]*[A-Z0-9]\b`)
	series   = regexp.MustCompile(`\bloadgen_[a-z_]+`)
	call     = regexp.MustCompile(`/api/v1/[a-z_{}/.0-9-]*[a-z}]`)
	file     = regexp.MustCompile(`^[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.*<>…-]+)+/?$`)
)

func TestDocumentedFlagsExist(t *testing.T) {
	have := known(t)
	all := slices.Clone(foreign)
	for _, of := range have {
		for _, flags := range of {
			all = append(all, flags...)
		}
	}
	commands := 0
	for _, c := range codes(t) {
		if flag := dashed.FindString(c.text); !c.block && strings.HasPrefix(c.text, "--") {
			assert.True(t, slices.Contains(all, flag), "%s: no program has the flag %s", c.at, flag)
		}
		match := command.FindStringSubmatch(cut.ReplaceAllString(c.text, ""))
		if match == nil {
			continue
		}
		commands++
		of, first := have[match[1]], strings.SplitN(match[2]+" ", " ", 2)[0]
		allowed := of[""]
		if first != "" && !strings.HasPrefix(first, "-") && c.text != match[1]+".yaml" {
			own, there := of[first]
			if !assert.True(t, there, "%s: %s has no command %s", c.at, match[1], first) {
				continue
			}
			allowed = append(slices.Clone(allowed), own...)
		}
		own, passed, _ := strings.Cut(match[2], " -- ") // booth arena passes the flags behind on to loadgen trial
		for _, flag := range dashed.FindAllString(own, -1) {
			assert.True(t, slices.Contains(allowed, flag), "%s: %s has no %s", c.at, match[0], flag)
		}
		trial := slices.Concat(have["loadgen"][""], have["loadgen"]["trial"])
		for _, flag := range dashed.FindAllString(passed, -1) {
			assert.True(t, slices.Contains(trial, flag), "%s: loadgen trial has no %s", c.at, flag)
		}
	}
	assert.Greater(t, commands, 30)
}

// Each flag in the second column is one of the load generator, also where another program has it too.
func TestFlagsInPlaceOfOthersExist(t *testing.T) {
	all := slices.Concat(slices.Collect(maps.Values(known(t)["loadgen"]))...)
	rows := 0
	for i, line := range strings.Split(content(t, otherTools), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		rows++
		for _, flag := range dashed.FindAllString(cells[2], -1) {
			assert.True(t, slices.Contains(all, flag), "%s:%d: loadgen has no flag %s", otherTools, i+1, flag)
		}
	}
	assert.Greater(t, rows, 50)
}

func TestDocumentedMageTargetsExist(t *testing.T) {
	targets := map[string]bool{}
	for _, decl := range parse(t, "Magefile.go").Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() {
			name := strings.ToLower(f.Name.Name)
			if f.Recv != nil {
				name = strings.ToLower(f.Recv.List[0].Type.(*ast.Ident).Name) + ":" + name
			}
			targets[name] = true
		}
	}
	found := 0
	for _, c := range codes(t) {
		for _, match := range mage.FindAllStringSubmatch(c.text, -1) {
			found++
			assert.True(t, targets[match[1]], "%s: Magefile.go has no target %s", c.at, match[1])
		}
	}
	assert.Greater(t, found, 20)
}

// notOurs are variables that Kubernetes sets, and names that only look like series or API calls of the project.
var notOurs = []string{"LOADGEN_SERVICE_HOST", "LOADGEN_PORT_8088_TCP", "/api/v1/query", "/api/v1/targets"}

// seriesOfFigures returns the series that are named after figures.
func seriesOfFigures() map[string]bool {
	names := map[string]bool{}
	for _, f := range api.Times {
		names["loadgen_"+f.Key+"_seconds"], names["loadgen_"+f.Key+"_all_seconds"] = true, true
	}
	for _, f := range api.Figures {
		names["loadgen_"+f.Metric] = names["loadgen_"+f.Metric] || f.Metric != "" && f.Live != nil
	}
	return names
}

func TestDocumentedNamesExist(t *testing.T) {
	variables := map[string]bool{}
	for _, name := range slices.Concat(fields(t)) {
		variables["LOADGEN_"+strings.ToUpper(strings.ReplaceAll(name, ".", "_"))] = true
	}
	names := seriesOfFigures()
	for _, path := range tracked(t, "*.go", "*.yaml", "*.yml", "deploy/Dockerfile") {
		text := content(t, path)
		for _, name := range variable.FindAllString(text, -1) {
			if strings.HasPrefix(name, "KVBOOTH") || path == "sidecar/cmd/loadgen/internal/config/config.go" {
				variables[name] = true
			}
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			for _, name := range series.FindAllString(text, -1) {
				names[name] = true
			}
		}
	}
	document := content(t, "sidecar/api/openapi.yaml")
	parameter := regexp.MustCompile(`\\\{[a-z]+\\\}`)
	paths := []string{}
	for _, match := range regexp.MustCompile(`(?m)^  (/api/v1/\S+):$`).FindAllStringSubmatch(document, -1) {
		paths = append(paths, parameter.ReplaceAllString(regexp.QuoteMeta(match[1]), `[^/]+`))
	}
	calls := regexp.MustCompile("^(?:" + strings.Join(paths, "|") + ")$")
	for _, c := range codes(t) {
		for _, name := range variable.FindAllString(c.text, -1) {
			assert.True(t, variables[name] || slices.Contains(notOurs, name), "%s: no program reads %s", c.at, name)
		}
		for _, name := range series.FindAllString(c.text, -1) {
			begins := func(have string) bool { return strings.HasSuffix(name, "_") && strings.HasPrefix(have, name) }
			plain := regexp.MustCompile(`_(?:count|sum|bucket)$`).ReplaceAllString(name, "")
			there := names[name] || names[plain] || slices.ContainsFunc(slices.Collect(maps.Keys(names)), begins)
			assert.True(t, there, "%s: there is no series %s", c.at, name)
		}
		for _, path := range call.FindAllString(c.text, -1) {
			assert.True(t, calls.MatchString(path) || slices.Contains(notOurs, path), "%s: the API has no %s", c.at, path)
		}
	}
}

// Files in backticks exist, if the first part of the path is a directory of the repository.
func TestDocumentedFilesExist(t *testing.T) {
	folders := map[string]bool{}
	for _, path := range tracked(t) {
		if dir, _, below := strings.Cut(path, "/"); below {
			folders[dir] = true
		}
	}
	placeholder := regexp.MustCompile(`<[a-z-]+>|…`)
	found := 0
	for _, c := range codes(t) {
		if c.block || !file.MatchString(c.text) || !folders[strings.Split(c.text, "/")[0]] {
			continue
		}
		found++
		files, err := filepath.Glob(filepath.Join(root, placeholder.ReplaceAllString(c.text, "*")))
		require.NoError(t, err)
		assert.NotEmpty(t, files, "%s: there is no %s", c.at, c.text)
	}
	assert.Greater(t, found, 30)
}
