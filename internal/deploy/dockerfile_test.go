package deploy

import (
	"go/build"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/internal/browser"
	"kvbooth/internal/pack"
	"kvbooth/sidecar/booth/local"
)

// stage is a stage of the Dockerfile.
type stage struct {
	from         string // an image, or an earlier stage
	instructions []instruction
}

type instruction struct {
	name  string // in capitals
	flags map[string]string
	words []string
}

// readDockerfile reads the stages by name. It supports the syntax that this Dockerfile uses: no heredocs, and JSON
// arrays of words without spaces.
func readDockerfile(t *testing.T, root string) map[string]*stage {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile"))
	require.NoError(t, err)
	stages := map[string]*stage{}
	var now *stage
	for line := range strings.Lines(strings.ReplaceAll(string(text), "\\\n", " ")) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		in := instruction{name: words[0], flags: map[string]string{}}
		for _, word := range words[1:] {
			if flag, ok := strings.CutPrefix(word, "--"); ok && len(in.words) == 0 {
				name, value, _ := strings.Cut(flag, "=")
				in.flags[name] = value
				continue
			}
			in.words = append(in.words, strings.Trim(word, `[]",`))
		}
		if in.name == "FROM" {
			require.Len(t, in.words, 3, "%s: every stage must have a name", line)
			now = &stage{from: in.words[0]}
			stages[in.words[2]] = now
			continue
		}
		require.NotNil(t, now, line)
		now.instructions = append(now.instructions, in)
	}
	require.NotEmpty(t, stages)
	return stages
}

// all returns the instructions that make an image, beginning with those of its bases.
func all(stages map[string]*stage, name string) []instruction {
	s := stages[name]
	if s == nil {
		return nil
	}
	return append(all(stages, s.from), s.instructions...)
}

// last returns the last instruction with a name.
func last(t *testing.T, instructions []instruction, name string) instruction {
	t.Helper()
	for _, in := range slices.Backward(instructions) {
		if in.name == name {
			return in
		}
	}
	t.Fatalf("no %s", name)
	return instruction{}
}

// Images are from Docker's official library or from Grafana, in the versions that the project is built with.
func TestBaseImagesHaveTheProjectsVersions(t *testing.T) {
	root, _ := load(t)
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(mod)
	require.NotNil(t, goVersion)
	stages := readDockerfile(t, root)
	official := regexp.MustCompile(`^(golang|node|grafana/grafana):([\d.]+)[a-z-]*$`)
	for name, s := range stages {
		if s.from == "scratch" || stages[s.from] != nil {
			continue
		}
		image := official.FindStringSubmatch(s.from)
		require.NotNil(t, image, "%s: %s", name, s.from)
		want := string(goVersion[1])
		switch image[1] {
		case "node":
			want = strconv.Itoa(browser.OldestNode)
		case "grafana/grafana":
			want = local.OldestGrafana
		}
		require.Equal(t, want, image[2], s.from)
	}
}

// isPackage reports whether a path is made by `go tool mage package`. It may not exist.
func isPackage(source string) bool {
	return source == filepath.ToSlash(filepath.Join(pack.Dir, local.AppID))
}

// Copied files exist: in the project, unless the ignore file excludes them, or in a stage.
func TestCopiedFilesExist(t *testing.T) {
	root, _ := load(t)
	text, err := os.ReadFile(filepath.Join(root, "deploy", "Dockerfile.dockerignore"))
	require.NoError(t, err)
	ignores := strings.Fields(string(text))
	stages := readDockerfile(t, root)
	for name, s := range stages {
		for _, in := range s.instructions {
			if in.name != "COPY" {
				continue
			}
			if from, ok := in.flags["from"]; ok {
				require.Contains(t, stages, from, name)
				continue
			}
			for _, source := range in.words[:len(in.words)-1] {
				if !isPackage(source) {
					_, err := os.Stat(filepath.Join(root, source))
					require.NoError(t, err, name)
				}
				require.Contains(t, ignores, "!"+source, "deploy/Dockerfile.dockerignore excludes it")
			}
		}
	}
}

// Built programs are the project's, and are copied from the build's output directory.
func TestProgramsAreBuiltAndCopied(t *testing.T) {
	root, _ := load(t)
	stages := readDockerfile(t, root)
	run := strings.Join(last(t, slices.DeleteFunc(slices.Clone(stages["build"].instructions), func(in instruction) bool {
		return !slices.Contains(in.words, "go") || !slices.Contains(in.words, "build")
	}), "RUN").words, " ")
	for _, name := range []string{"loadgen", "booth"} {
		require.Contains(t, run, "./sidecar/cmd/"+name)
		pkg, err := build.ImportDir(filepath.Join(root, "sidecar", "cmd", name), 0)
		require.NoError(t, err)
		require.True(t, pkg.IsCommand())
		require.Contains(t, run, "-o /out/ ")

		image := all(stages, name)
		copied := last(t, image, "COPY")
		require.Equal(t, []string{"/out/" + name, "/" + name}, copied.words)
		require.Equal(t, []string{"/" + name}, last(t, image, "ENTRYPOINT").words)
		require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, last(t, image, "USER").words[0],
			"not root, and by number, since there are no names")
		require.Equal(t, "scratch", stages[stages[name].from].from, "the image must have no shell")
	}
	server := "/out/nats-server"
	require.True(t, slices.ContainsFunc(stages["build"].instructions, func(in instruction) bool {
		return in.name == "RUN" && slices.Contains(in.words, "tools/nats") && slices.Contains(in.words, server)
	}))
	require.True(t, slices.ContainsFunc(stages["loadgen"].instructions, func(in instruction) bool {
		return in.name == "COPY" && slices.Equal(in.words, []string{server, "/nats-server"})
	}), "beside the load generator, which looks for it there")
}

// Grafana's image has the app and the provisioning in Grafana's directories, and the settings of docker-compose.yaml,
// except for those that depend on the installation.
func TestGrafanaImageHasAppAndSettings(t *testing.T) {
	root, project := load(t)
	image := readDockerfile(t, root)["grafana"]
	require.NotNil(t, image)
	require.Equal(t, project.Services["grafana"].Image, image.from)
	require.Regexp(t, `^[1-9]\d*:[1-9]\d*$`, last(t, image.instructions, "USER").words[0], "a numeric ID, not root")

	have, copies := map[string]string{}, map[string]string{}
	for _, in := range image.instructions {
		switch in.name {
		case "ENV":
			name, value, _ := strings.Cut(in.words[0], "=")
			have[name] = value
		case "COPY":
			copies[in.words[0]] = in.words[1]
		}
	}
	plugins := have["GF_PATHS_PLUGINS"]
	require.False(t, strings.HasPrefix(plugins, "/var/lib/grafana"), "a volume would hide the plugins")
	delete(have, "GF_PATHS_PLUGINS")
	require.Equal(t, map[string]string{
		"provisioning": "/etc/grafana/provisioning",
		filepath.ToSlash(filepath.Join(pack.Dir, local.AppID)): plugins + "/" + local.AppID,
	}, copies)

	place := regexp.MustCompile(`^(KVBOOTH_.*|GF_AUTH_.*|GF_SERVER_.*|GF_SECURITY_ADMIN_PASSWORD)$`)
	want := map[string]string{}
	for name, value := range project.Services["grafana"].Environment {
		if !place.MatchString(name) {
			want[name] = *value
		}
	}
	require.Equal(t, want, have)
}
