package config

import (
	"bytes"
	"cmp"
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
	"kvbooth/sidecar/loadgen/workload"
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
		for _, name := range f.names() { // an earlier one may be in the values of an installation
			at, parts := root, strings.Split(name, ".")
			for _, part := range parts[:len(parts)-1] {
				properties := at["properties"].(object)
				if properties[part] == nil {
					properties[part] = section()
				}
				at = properties[part].(object)
			}
			at["properties"].(object)[parts[len(parts)-1]] = f.schema()
		}
	}
	return root
}

func section() object {
	return object{"type": "object", "additionalProperties": false, "properties": object{}}
}

// The forms that a schema can check at least in part. The program checks all of each.
var formPatterns = map[string]string{
	"url": `^https?://[^/?#@\s]+[^?#@\s]*$`, "page": `^(https?://[^/?#@\s]+[^?#@\s]*|no-target)$`, "target": `^https?://[^/?#@\s]+[^?#@\s]*$`, "origin": `^https?://[^/?#@\s]+/?$`,
	"address": `:[0-9]+$`, "host": `^[^/\s]+$`,
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
	if structured, ok := f.flag.Target.Addr().Interface().(structure); ok {
		return object{"type": structured.kinds()}
	}
	if f.flag.Target.Kind() == reflect.Slice {
		item := object{"type": "string"}
		if pattern := f.pattern(); pattern != "" {
			item["pattern"] = pattern
		}
		return object{"type": "array", "items": item}
	}
	switch t := f.valueType(); {
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+)$`}
	case t == reflect.TypeFor[workload.Openings](), f.flag.Target.Kind() == reflect.Pointer:
		return f.optional(t)
	case t.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case t.Kind() == reflect.Int:
		return f.ranged("integer")
	case t.Kind() == reflect.Float64:
		return f.ranged("number")
	case t.Kind() == reflect.Uint64: // one above 2^53 as a string, because Helm reads numbers as floating-point ones
		return object{"type": []string{"integer", "string"}, "minimum": 0, "maximum": 1 << 53, "pattern": `^[0-9]{1,20}$`}
	}
	if words := f.words(); len(words) > 0 {
		return object{"enum": f.choices(words)}
	}
	s := object{"type": "string"}
	switch form, pattern := f.flag.Tag.Get("form"), f.pattern(); {
	case pattern != "":
		s["pattern"] = pattern
	case form == "" || form == "line":
		s["maxLength"] = api.MaxLine
	}
	return s
}

// pattern returns the pattern of a text, empty without one.
func (f field) pattern() string {
	return cmp.Or(f.flag.Tag.Get("pattern"), formPatterns[f.flag.Tag.Get("form")])
}

// optional returns the schema of a number that may be missing, as the empty text.
func (f field) optional(t reflect.Type) object {
	kind, pattern := "integer", `^(-?[0-9]+)?$`
	if t.Kind() == reflect.Float64 {
		kind, pattern = "number", `^([0-9.eE+-]+)?$`
	}
	s := object{"type": []string{kind, "string"}, "pattern": pattern}
	if l, ok := f.limit(); ok {
		s["minimum"], s["maximum"] = l.Min, l.Max
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
