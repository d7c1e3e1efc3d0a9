package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

const chartSchema = "../../../../../deploy/chart/kvbooth/values.schema.json"

// The Helm chart takes the fields of the file as values, and its schema refuses what the file would refuse. This part
// of the schema is generated from the fields. The whole schema has a canonical form, so that it can be rewritten.
func TestDocumentChartSchema(t *testing.T) {
	data, err := os.ReadFile(chartSchema)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // as they stand there
	var schema map[string]any
	require.NoError(t, decoder.Decode(&schema))
	defs, ok := schema["$defs"].(map[string]any)
	require.True(t, ok, "%s has lost its $defs", chartSchema)
	defs["loadgenConfig"] = fileSchema()
	want, err := json.MarshalIndent(schema, "", "  ")
	require.NoError(t, err)
	want = append(want, '\n')
	if *update {
		require.NoError(t, os.WriteFile(chartSchema, want, 0o644))
		return
	}
	require.Equal(t, string(want), string(data),
		"go test ./sidecar/cmd/loadgen/internal/config -run Document -update rewrites the schema")
}

// object is a JSON schema, or a part of one.
type object = map[string]any

// fileSchema returns the JSON schema of the file: sections as in YAML, with only fields in them.
func fileSchema() object {
	root := section()
	for _, f := range newModel(Config{}, io.Discard).fields {
		if f.name == "config" {
			continue
		}
		at, parts := root, strings.Split(f.name, ".")
		for _, part := range parts[:len(parts)-1] {
			properties := at["properties"].(object)
			if properties[part] == nil {
				properties[part] = section()
			}
			at = properties[part].(object)
		}
		at["properties"].(object)[parts[len(parts)-1]] = f.schema()
	}
	return root
}

func section() object {
	return object{"type": "object", "additionalProperties": false, "properties": object{}}
}

// The forms that a schema can check at least in part. The program checks all of each.
var formPatterns = map[string]string{
	"url": `^https?://[^/?#@\s]+[^?#@\s]*$`, "page": `^(https?://[^/?#@\s]+[^?#@\s]*|no-target)$`, "target": `^https?://[^/?#@\s]+[^?#@\s]*$`, "origin": `^https?://[^/?#@\s]+/?$`,
	"address": `:[0-9]+$`, "host": `^[^/\s]+$`, "bucket": bucketName,
	"opening_tokens": `^[0-9]*$`, "openings": `^[0-9]*$`,
	"offer": offerPattern(), "endpoint": strings.TrimSuffix(offerPattern(), "$") + `=https?://\S+$`,
}

func offerPattern() string {
	modes := slices.DeleteFunc(slices.Clone(api.Modes), func(m api.Mode) bool { return m == api.ModeUnknown })
	return fmt.Sprintf("^(%s)(/(%s))?$", alternatives(modes), alternatives(api.Speculations))
}

func alternatives[T ~string](of []T) string {
	words := make([]string, len(of))
	for i, v := range of {
		words[i] = string(v)
	}
	return strings.Join(words, "|")
}

// schema returns the schema of a field in YAML.
func (f field) schema() object {
	s := f.typed()
	s["description"] = f.flag.Help
	if f.flag.HasDefault {
		s["default"] = f.typedDefault()
	}
	return s
}

func (f field) typed() object {
	form := f.flag.Tag.Get("form")
	switch f.flag.Target.Interface().(type) {
	case bool:
		return object{"type": "boolean"}
	case int:
		return f.ranged("integer")
	case float64:
		return f.ranged("number")
	case uint64: // one above 2^53 as a string, because Helm reads numbers as floating-point ones
		return object{"type": []string{"integer", "string"}, "minimum": 0, "maximum": 1 << 53, "pattern": `^[0-9]{1,20}$`}
	case time.Duration:
		return object{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`}
	case []string:
		item := object{"type": "string"}
		if pattern := formPatterns[form]; pattern != "" {
			item["pattern"] = pattern
		}
		return object{"type": "array", "items": item}
	}
	if words := f.words(); len(words) > 0 {
		return object{"enum": f.choices(words)}
	}
	if f.structured() {
		return object{"type": map[string][]string{
			"arms": {"string", "array"}, "command": {"string", "array"}, "request": {"string", "object"},
			"requests": {"string", "array"},
		}[form]}
	}
	s := object{"type": "string"}
	switch pattern := formPatterns[form]; {
	case form == "openings" || form == "opening_tokens":
		l := api.Limits[form]
		s = object{"type": []string{"integer", "string"}, "minimum": l.Min, "maximum": l.Max, "pattern": pattern}
	case pattern != "":
		s["pattern"] = pattern
	case form == "" || form == "line":
		s["maxLength"] = api.MaxLine
	}
	return s
}

// choices returns the words of a field, including the values that YAML reads as something other than text.
func (f field) choices(words []string) []any {
	var all []any
	for _, word := range words {
		all = append(all, word)
		if v, err := strconv.ParseBool(word); err == nil {
			all = append(all, v)
		}
	}
	if !f.flag.HasDefault {
		all = append(all, "")
	}
	return all
}

func (f field) ranged(kind string) object {
	l, _ := f.limit()
	low := "minimum"
	if l.Above {
		low = "exclusiveMinimum"
	}
	return object{"type": kind, low: l.Min, "maximum": l.Max}
}

// typedDefault returns the default in YAML's form.
func (f field) typedDefault() any {
	v := reflect.New(f.flag.Target.Type()).Elem()
	if err := f.set(v, f.flag.Default); err != nil {
		panic(err) // TestTagsAreSound detects it
	}
	if _, ok := v.Interface().(time.Duration); ok {
		return f.flag.Default
	}
	return v.Interface()
}

// Every field has a type in the schema, whose patterns allow defaults and samples.
func TestChartSchemaHasEveryField(t *testing.T) {
	schema := fileSchema()
	for _, f := range newModel(Config{}, io.Discard).fields {
		if f.name == "config" {
			continue
		}
		at := schema
		for part := range strings.SplitSeq(f.name, ".") {
			at, _ = at["properties"].(object)[part].(object)
			require.NotNil(t, at, f.name)
		}
		require.True(t, at["type"] != nil || at["enum"] != nil, f.name)
		if pattern, ok := at["pattern"].(string); ok && f.flag.HasDefault {
			require.Regexp(t, pattern, f.flag.Default, f.name)
		}
		if value, ok := samples[strings.TrimPrefix(f.name, "twin.")]; ok && at["pattern"] != nil {
			require.Regexp(t, at["pattern"], value, f.name)
		}
	}
}
