package httpd

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/booth/httpd/httpdtest"
)

var update = flag.Bool("update", false, "rewrite the tables in docs/simulated-api.md")

const document = "../../../docs/simulated-api.md"

// TestDocumentHasCurrentTables compares the tables in the document with those of the program.
func TestDocumentHasCurrentTables(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		data, err := os.ReadFile(document)
		require.NoError(t, err)
		text := string(data)
		for name, table := range map[string]string{
			"endpoints": endpointsTable(t), "fields": fieldsTable(fields), "extensions": fieldsTable(extensions),
			"differences": differencesTable(t), "engine": engineTable(t),
		} {
			begin, end := "<!-- begin "+name+" -->\n", "<!-- end "+name+" -->\n"
			before, rest, ok := strings.Cut(text, begin)
			require.True(t, ok, name)
			_, after, ok := strings.Cut(rest, end)
			require.True(t, ok, name)
			text = before + begin + table + end + after
		}
		if *update {
			require.NoError(t, os.WriteFile(document, []byte(text), 0o600))
			return
		}
		require.Equal(t, text, string(data),
			"update the tables: go test ./sidecar/booth/httpd -run TestDocumentHasCurrentTables -update")
	})
}

func endpointsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| call | purpose |\n|---|---|\n")
	for _, e := range newServer(t, nil).endpoints() {
		methods := strings.Join(slices.Sorted(maps.Keys(e.methods)), ", ")
		fmt.Fprintf(&b, "| `%s %s` | %s |\n", methods, strings.Replace(e.path, "...}", "}", 1), e.description)
	}
	return b.String()
}

// engineTable lists the paths of a worker's port.
func engineTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| call | engines | purpose |\n|---|---|---|\n")
	for _, c := range newServer(t, nil).workers[0].calls() {
		engines := "all"
		if c.engines != nil {
			engines = strings.Join(c.engines, ", ")
		}
		verbs := strings.Join(slices.Sorted(maps.Keys(c.methods)), ", ")
		fmt.Fprintf(&b, "| `%s %s` | %s | %s |\n", verbs, c.path, engines, c.description)
	}
	return b.String()
}

func fieldsTable(all []field) string {
	var b strings.Builder
	headings := map[treatment]string{
		honored: "| honored | effect |\n|---|---|\n",
		checked: "\n| checked, without effect | accepted values |\n|---|---|\n",
	}
	var without []string
	for i, f := range all {
		if f.treat == ignored {
			without = append(without, "`"+f.name+"`")
			continue
		}
		if i == 0 || all[i-1].treat != f.treat {
			b.WriteString(headings[f.treat])
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", f.name, f.description)
	}
	return b.String() + "\nAccepted and ignored: " + strings.Join(without, ", ") + ".\n"
}

func differencesTable(t *testing.T) string {
	all, err := httpdtest.Exchanges()
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString("| request | Dynamo 1.6.1, mock workers | here | why |\n|---|---|---|---|\n")
	for _, e := range all {
		if e.Ours != nil {
			fmt.Fprintf(&b, "| %s | %d | %d | %s |\n", e.Name, e.Status, e.Ours.Status, e.Ours.Why)
		}
	}
	return b.String()
}

func TestCommandsInDocumentWork(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl: apt install curl")
	}
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	commands := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	require.Len(t, commands, 2)
	server := httptest.NewServer(newServer(t, nil).Frontend())
	defer server.Close()
	outputs := make([]string, 2)
	for i, m := range commands {
		require.Contains(t, m[1], "http://127.0.0.1:8000/")
		command := strings.ReplaceAll(m[1], "http://127.0.0.1:8000", server.URL)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		path := filepath.Dir(curl) + ":" + os.Getenv("PATH")
		cmd.Env = append(os.Environ(), "PATH="+path, "no_proxy=127.0.0.1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		outputs[i] = string(out)
	}
	assert.Contains(t, outputs[0], `"completion_tokens":60`)
	assert.True(t, strings.HasSuffix(outputs[0], "data: [DONE]\n\n"))
	assert.Contains(t, outputs[1], "# TYPE dynamo_frontend_requests_total counter")
}

func TestListedExtensionsAreAccepted(t *testing.T) {
	for _, f := range extensions {
		value := map[string]string{
			"extra_fields": `["timing"]`, "annotations": `[]`, "agent_hints": `{"osl":5}`, "min_tokens": "3",
			"backend_instance_id": "null", "request_timestamp_ms": "1795254324000",
		}[f.name]
		require.NoError(t, new(nvext).UnmarshalJSON([]byte(`{"`+f.name+`":`+cmp.Or(value, "true")+`}`)), f.name)
	}
}
