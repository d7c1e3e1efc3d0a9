package config

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
	"kvbooth/sidecar/loadgen/cluster/router"
)

var update = flag.Bool("update", false, "rewrite the table of fields in CONFIGURATION.md")

// samples are values of the fields without a range. None is the default.
var samples = map[string]string{
	"target.url": "https://other/api", "target.model": "llama", "target.api_key_file": "key", "target.ca_file": "ca",
	"target.headers": "X-Tenant=a,api-key=file:key,X-Route=b=c", "target.cert_file": "ca", "target.key_file": "ca-key",
	"cluster.headers": "X-Tenant=a", "cluster.ca_file": "ca", "cluster.cert_file": "ca", "cluster.key_file": "ca-key",
	"followup.headers": "X-Tenant=a", "followup.cert_file": "ca", "followup.key_file": "ca-key",
	"request.ignore_eos": "true", "request.temperature": "0.7", "request.top_p": "0.9", "request.seed": "-3",
	"request.priority": "-3", "request.body": `{"chat_template_kwargs":{"enable_thinking":false}}`,
	"target.router": "vllm-router", "target.worker_header": "X-Engine",
	"target.session": "header:X-Session-Id", "target.request_id": "off",
	"deployment.kind": "real", "deployment.engine": "vLLM", "deployment.model": "Llama 3.1 70B", "deployment.gpu": "H200",
	"deployment.dynamo": "1.6.1", "deployment.kubernetes": "1.34", "deployment.worker_image": "registry/worker:1",
	"deployment.serving": "aggregated", "deployment.chunked_prefill": "true", "deployment.overlap_scheduler": "false",
	"deployment.kv_cache_dtype": "fp8",
	"start":                     "true", "preset": "recorded", "seed": "18446744073709551615",
	"followup.text": "go on, please: 100 %",
	"followup.url":  "http://enduser:8000", "followup.model": "llama-3.1-8b", "followup.api_key_file": "key",
	"followup.ca_file": "ca",
	"corpus.dir":       "/articles", "corpus.file": "/articles.jsonl", "corpus.s3.endpoint": "https://ams3.example.org",
	"corpus.s3.bucket": "texts",
	"corpus.s3.prefix": "booth/", "corpus.s3.region": "ams3", "corpus.s3.path_style": "false", "corpus.s3.ca_file": "ca",
	"corpus.s3.access_key_file": "key", "corpus.s3.secret_key_file": "key",
	"mode.endpoints": "kv=http://x:8000,kv/eagle3=http://x:8001",
	"mode.driver":    "pinned", "mode.mode": "round_robin", "mode.speculation": "off",
	"mode.offers": "kv,round_robin,kv/eagle3",
	"arms":        `[{"name":"a","url":"http://a:1"},{"name":"b","mode":"kv","url":"http://b:1"}]`,
	"mode.arm":    "b", "switch.command": `["true","{arm}"]`, "switch.ready.url": "{url}/health/{arm}?mode={mode}",
	"switch.http":          `{"method":"PUT","url":"http://a:1/policy","body":"{arm}"}`,
	"cold.http":            `[{"method":"POST","url":"http://x:1/reset_prefix_cache"}]`,
	"mode.kubernetes.name": "booth", "mode.kubernetes.namespace": "dynamo", "mode.kubernetes.selector": "app=booth",
	"mode.kubernetes.kubeconfig": "/kubeconfig",
	"mode.kubernetes.context":    "event", "mode.kubernetes.restart": "frontend",
	"mode.kubernetes.variants_file": "variants", "mode.kubernetes.restart_after": "true",
	"prometheus.url": "http://prometheus:9090", "prometheus.namespace": "booth",
	"cluster.metrics_urls": "no-target,http://a:8081,http://b:8082/metrics",
	"default_baseline":     "this target", "title": "# our: booth", "subtitle": "'second' \"line\"",
	"vendor": "digitalocean",
	"listen": "localhost:0", "token_file": "token", "metrics_token_file": "token", "hosts": "booth.local,10.0.0.1",
	"public_page": "true", "switch.in_place": "true", "tls_cert_file": "ca", "tls_key_file": "ca-key",
	"opening_tokens": "500",
	"rate":           "2/s..20/s/10m", "arrivals": "gamma",
	"shape.preset": "chat", "shape.mix": "chat=3,agent@adapter=1", "shape.prefix_tokens": "3000",
	"trace": "a.jsonl,b.jsonl", "trace_loop": "true", "trace_skip_invalid": "true", "trace_time_unit": "ms",
	"name": "nightly", "label": "commit=3f2c1a0,night=12",
	"fail_if": "ttft_p95>600ms,verdict=bottleneck", "output": "report.html,turns.csv", "caches": "kept",
	"not_certain":     "fail",
	"whatif.profiles": "/profiles", "shadow.enabled": "false", "shadow.token_ids": "false",
	"members.fleet": "booth", "members.name": "one", "members.listen": "127.0.0.1:8089",
	"members.nats.url": "tls://nats.example.com:4222", "members.nats.token_file": "token",
	"members.nats.nkey_file": "seed", "members.nats.ca_file": "ca",
	"data_dir": "/data", "log.level": "debug", "log.format": "json",
}

// sample returns a value that differs from the default.
func sample(f field) string {
	if value, ok := samples[strings.TrimPrefix(f.name, "twin.")]; ok {
		return value
	}
	l, _ := f.limit()
	value := strconv.FormatFloat(l.Max, 'f', -1, 64)
	if f.valueType() == reflect.TypeFor[time.Duration]() {
		value = duration(l.Max)
	}
	switch f.name {
	case "max_tokens", "slider.max", "max_concurrency", "turns.max":
	case "output_tokens.mean", "slider.min", "slider.increment", "concurrency":
		value = "61"
	case "turns.min":
		value = "4"
	}
	if d, err := time.ParseDuration(value); err == nil {
		return d.String()
	}
	return value
}

// needs are the flags without which a field may not be set.
var needs = map[string]string{
	"twin.prometheus.namespace": "--prometheus-url=http://p --prometheus-namespace=main",
	"warmup":                    "--requests=1",
	"mode.arm":                  "--arms=a=http://a:1,b=http://b:1",
	"twin.mode.arm":             "--arms=a=http://a:1,b=http://b:1",
	"cold.http":                 "--arms=a=http://a:1,b=http://b:1",
	"switch.timeout":            "--arms=a=http://a:1,b=http://a:1 --switch-command=true",
	"switch.ready.url":          "--arms=a=http://a:1,b=http://a:1 --switch-command=true",
	"switch.in_place":           "--arms=a=http://a:1,b=http://a:1 --switch-command=true",
	"switch.ready.turns":        "--arms=a=http://a:1,b=http://a:1 --switch-command=true",
	"switch.command":            "--arms=a=http://a:1,b=http://a:1",
	"switch.http":               "--arms=a=http://a:1,b=http://a:1",
	"slider.max":                "--max-concurrency=100000",
	"shape.groups":              "--shape=prefix",
	"shape.prefix_tokens":       "--shape=prefix",
	"shape.suffix_tokens":       "--shape=chat",
	"shape.answer_tokens":       "--shape=chat",
	"shape.zipf":                "--shape=prefix",
	"shape.turns":               "--shape=chat",
	"shape.context_tokens":      "--shape=chat",
	"shape.mix":                 "--shape=mixed",
	"burstiness":                "--arrivals=gamma",
	"trace_speed":               "--trace=x.jsonl",
	"trace_from":                "--trace=x.jsonl",
	"trace_to":                  "--trace=x.jsonl",
	"trace_sessions":            "--trace=x.jsonl",
	"trace_loop":                "--trace=x.jsonl",
	"trace_skip_invalid":        "--trace=x.jsonl",
	"trace_block_tokens":        "--trace=x.jsonl",
	"trace_time_unit":           "--trace=x.jsonl",
	"corpus.s3.bucket":          "--corpus-s3-endpoint=https://x",
	"corpus.s3.access_key_file": "--corpus-s3-secret-key-file=key",
	"corpus.s3.secret_key_file": "--corpus-s3-access-key-file=key",
	"members.nats.url":          "--members-nats-token-file=token",
}

// Each field can be set by its flag, its variable and the file, with the same result.
func TestEveryFieldFromEverySource(t *testing.T) {
	ca, caKey := certificate(t)
	files := map[string]string{
		"key": "k", "token": "0123456789abcdef", "ca": ca, "ca-key": caKey,
		"variants": "off: {args: [--model-path, /models/llama]}",
	}
	m := newModel(Config{}, io.Discard)
	for _, f := range m.fields {
		if f.name == "config" {
			continue
		}
		value, with := sample(f), []string{target}
		if strings.HasPrefix(f.name, "twin.") && f.name != "twin.target.url" {
			with = append(with, "--twin-target-url=http://twin:8000")
		}
		if slices.Contains([]string{"target.url", "twin.mode.arm"}, f.name) { // which exclude the addresses
			with = nil
		}
		with = append(with, strings.Fields(needs[f.name])...)
		for _, pair := range [][2]string{{"cert_file", "key_file=ca-key"}, {"key_file", "cert_file=ca"}} {
			section := strings.TrimSuffix(f.name, pair[0])
			if _, paired := m.byName[section+"cert_file"]; paired {
				with = append(with, "--"+strings.NewReplacer(".", "-", "_", "-").Replace(section+pair[1]))
			}
		}
		require.NotEqual(t, f.flag.Default, value, f.name)
		sources := map[string]input{
			"flag":     {args: append(slices.Clone(with), "--"+f.flag.Name+"="+value), files: files},
			"variable": {args: with, env: []string{f.env() + "=" + value}, files: files},
			"file":     {args: with, file: asYAML(f.name, value), files: files},
		}
		for source, in := range sources {
			require.Equal(t, value, in.must(t).Map()[f.name], "%s by its %s", f.name, source)
		}
	}
}

// certificate returns a certificate with its private key, in PEM.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	der, err := x509.MarshalPKCS8PrivateKey(server.TLS.Certificates[0].PrivateKey)
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func asYAML(name, value string) string {
	var text strings.Builder
	parts := strings.Split(name, ".")
	for depth, part := range parts {
		fmt.Fprintf(&text, "%s%s:\n", strings.Repeat("  ", depth), part)
	}
	return strings.TrimSuffix(text.String(), "\n") + fmt.Sprintf(" %q\n", value)
}

// Both ends of a range are valid, unless it excludes the lower one, and values beyond are not.
func TestRanges(t *testing.T) {
	ranges := 0
	for _, f := range newModel(Config{}, io.Discard).fields {
		l, ok := f.limit()
		switch f.flag.Target.Kind() {
		case reflect.Int, reflect.Float64, reflect.Int64:
			require.True(t, ok, "%s has no range", f.name)
		default:
			continue
		}
		ranges++
		text := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		if f.valueType() == reflect.TypeFor[time.Duration]() {
			text = duration
		}
		for value, want := range map[float64]bool{l.Min: !l.Above, l.Max: true, l.Min - 1: false, l.Max + 1: false} {
			err := f.set(reflect.New(f.flag.Target.Type()).Elem(), text(value))
			require.Equal(t, want, err == nil, "%s: %s (%v)", f.name, text(value), err)
		}
	}
	require.Greater(t, ranges, 20)
}

func TestSecretsHaveNoFlag(t *testing.T) {
	m := newModel(Config{}, io.Discard)
	err := kong.Visit(m.kong.Model, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			require.NotEqual(t, reflect.TypeFor[Secret](), flag.Target.Type(), flag.Name)
			for _, s := range new(Config).secrets() {
				require.NotEqual(t, strings.NewReplacer(".", "-", "_", "-").Replace(s.name), flag.Name)
			}
		}
		return next(nil)
	})
	require.NoError(t, err)
	for _, s := range new(Config).secrets() {
		require.NotContains(t, m.byName, s.name)
		require.Contains(t, m.byName, s.name+"_file")
	}
}

func TestTagsAreSound(t *testing.T) {
	for _, f := range newModel(Config{}, io.Discard).fields {
		help := f.flag.Help
		require.Regexp(t, `^[A-Z].*\.$`, help, f.name)
		if name := f.flag.Tag.Get("form"); name != "" {
			require.Contains(t, forms, name, f.name)
		}
		if f.flag.HasDefault {
			require.Nil(t, f.set(reflect.New(f.flag.Target.Type()).Elem(), f.flag.Default), f.name)
		}
	}
	for preset, values := range presets {
		require.Contains(t, newModel(Config{}, io.Discard).byName["preset"].words(), preset)
		input{args: []string{target, "--preset", preset}}.must(t)
		require.NotEmpty(t, values)
	}
}

const (
	document   = "../../../../../CONFIGURATION.md"
	tableBegin = "<!-- fields: written by go test ./sidecar/cmd/loadgen/internal/config -update -->\n"
	tableEnd   = "<!-- end of fields -->"
)

// The routers and vendors that the configuration allows are those of the table and of the API.
func TestRoutersAndVendors(t *testing.T) {
	fields := newModel(Config{}, io.Discard).byName
	require.Equal(t, router.IDs(), fields["target.router"].words())
	require.Equal(t, alternatives(api.Vendors), strings.Join(fields["vendor"].words(), "|"))
	vendor := func(args ...string) api.Vendor { return input{args: append(args, target)}.must(t).Settings().Vendor }
	require.Equal(t, api.VendorDigitalOcean, vendor("--vendor=digitalocean"))
	require.Equal(t, api.VendorNeutral, vendor())
}

// The table in the document is generated from the fields.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(document)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(data), tableBegin)
	require.True(t, ok, "%s has lost the line %s", document, tableBegin)
	_, after, ok := strings.Cut(rest, tableEnd)
	require.True(t, ok, "%s has lost the line %s", document, tableEnd)
	want := before + tableBegin + table() + tableEnd + after
	if *update {
		require.NoError(t, os.WriteFile(document, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(data), "go test ./sidecar/cmd/loadgen/internal/config -update rewrites the table")
}

// table describes all fields in Markdown, group by group. A field with the text of an earlier one of the same name
// refers to it. The fields of a twin's deployment all do, and are not listed.
func table() string {
	titles, rows, first := []string{}, map[string]string{}, map[string]string{}
	for _, f := range newModel(Config{}, io.Discard).fields {
		title := f.flag.Group.Title
		if !slices.Contains(titles, title) {
			titles = append(titles, title)
		}
		if strings.HasPrefix(f.name, "twin.deployment.") {
			continue
		}
		meaning := f.flag.Help
		for _, alias := range f.flag.Aliases {
			meaning += " Alias: `--" + alias + "`."
		}
		last := f.name[strings.LastIndex(f.name, ".")+1:]
		allowed := cmp.Or(elsewhere[f.name], f.allowed()) + code(f)
		rows[title] += fmt.Sprintf("| `%s` | %s |\n", f.name, cells(first, last, f.name, allowed, meaning))
	}
	var text strings.Builder
	for _, title := range titles {
		fmt.Fprintf(&text, "\n### %s\n\n", title)
		if rows[title] == "" {
			fmt.Fprint(&text, "The fields of `deployment`, such as `twin.deployment.gpu`.\n")
			continue
		}
		fmt.Fprintf(&text, "| field | allowed (default) | meaning |\n|---|---|---|\n%s", rows[title])
	}
	fmt.Fprint(&text, "\n### Secrets, which have no flag and no field in the file\n\n"+
		"Each comes from its variable, or from the file of the field with `_file`.\n\n| secret | allowed |\n|---|---|\n")
	byForm := map[string][]string{}
	for _, s := range new(Config).secrets() {
		byForm[s.allowed()] = append(byForm[s.allowed()], "`"+s.name+"`")
	}
	for _, form := range slices.Sorted(maps.Keys(byForm)) {
		fmt.Fprintf(&text, "| %s | %s |\n", strings.Join(byForm[form], ", "), form)
	}
	fmt.Fprint(&text, "\n### Flags of the commands, which have no variable and no place in the file\n\n"+
		"`loadgen help COMMAND` explains them.\n\n| command | flags |\n|---|---|\n")
	for _, command := range newModel(Config{}, io.Discard).kong.Model.Children {
		var flags []string
		for _, flag := range command.Flags {
			flags = append(flags, "`--"+flag.Name+"`")
		}
		if flags != nil {
			fmt.Fprintf(&text, "| `%s` | %s |\n", command.Name, strings.Join(flags, ", "))
		}
	}
	return text.String() + "\n"
}

// short has a name for each phrase that many fields share, without the article. The document explains the names.
var short = strings.NewReplacer(
	"one line of at most 200 characters", "text", "true or false", "switch", "whole number", "integer", "|", `\|`,
	"mode or mode/speculation, such as kv or kv/eagle3", "mode",
	"an http:// or https:// URL with a host, without user, query or fragment", "a URL without query",
	"http:// or https:// URL with a host, without user, query or fragment", "URL without query",
	"http:// or https:// URL with a host, without user or fragment, such as http://127.0.0.1:8000", "URL",
	"http:// or https:// URL with a host and an optional port only", "URL without path",
)

// elsewhere has what is allowed for fields whose forms the text of the document lists, or whose rule is in an error's
// message.
var elsewhere = map[string]string{
	"rate":           "a [rate](docs/traffic.md#a-number-of-conversations-or-a-rate), a ramp or steps",
	"target.session": "header:NAME, body:FIELD or returned:NAME",
	"request.body":   "JSON object", "label": "list of NAME=VALUE",
	"fail_if": "list of [conditions](#runs-that-end-by-themselves)", "output": "list of files",
	"arms": "list of [arms](docs/own-cluster.md#compare-other-routers), or NAME=URL,NAME=URL",
}

// cells returns the cells of what is allowed and of the meaning, or those that refer to the owner that had both under
// this name first.
func cells(first map[string]string, name, owner, allowed, meaning string) string {
	key := name + "\n" + allowed + "\n" + meaning
	if at, ok := first[key]; ok {
		return "| As `" + at + "`."
	}
	first[key] = owner
	for _, article := range []string{"a ", "an "} {
		allowed = strings.TrimPrefix(allowed, article)
	}
	return short.Replace(allowed) + " | " + meaning
}

// code returns the default of a field in brackets, "" without one and for a switch that is off.
func code(f field) string {
	if !f.flag.HasDefault || f.flag.Default == "false" {
		return ""
	}
	return " (`" + f.flag.Default + "`)"
}
