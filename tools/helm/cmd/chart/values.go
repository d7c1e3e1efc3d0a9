package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli/values"
	"helm.sh/helm/v4/pkg/getter"
)

// load reads the chart and the values, and checks them against the chart's schema. Its errors are [badInput].
func (s *source) load() (*chart.Chart, map[string]any, error) {
	c, err := loader.LoadDir(s.Chart)
	if err != nil {
		return nil, nil, badf("chart %s: %w", s.Chart, err)
	}
	for _, file := range s.Values {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			return nil, nil, badf("values file %s: there is no such file%s", file, s.others())
		}
	}
	options := values.Options{ValueFiles: s.Values, Values: s.Set}
	given, err := options.MergeValues(getter.Providers{})
	if err != nil {
		return nil, nil, badf("values: %w", err)
	}
	all, err := util.CoalesceValues(c, given)
	if err != nil {
		return nil, nil, badf("values: %w", err)
	}
	if err := conforms(all, c.Schema); err != nil {
		return nil, nil, err
	}
	return c, given, nil
}

// others names the values files that come with the chart.
func (s *source) others() string {
	found, err := filepath.Glob(filepath.Join(s.Chart, "values*.yaml"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return "; the chart has " + strings.Join(found, ", ")
}

// schemaAddress is what the schema is called while it is compiled.
const schemaAddress = "file:///values.schema.json"

// conforms says in words which values the schema does not allow, each with its path and with what is allowed there.
func conforms(all map[string]any, schema []byte) error {
	if len(schema) == 0 {
		return nil
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return badf("values.schema.json: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource(schemaAddress, document); err != nil {
		return badf("values.schema.json: %w", err)
	}
	compiled, err := compiler.Compile(schemaAddress)
	if err != nil {
		return badf("values.schema.json: %w", err)
	}
	// As JSON has them, whatever types the reader of YAML took.
	text, err := json.Marshal(all)
	if err != nil {
		return badf("values: %w", err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return badf("values: %w", err)
	}
	var wrong *jsonschema.ValidationError
	switch err := compiled.Validate(instance); {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return badf("values: %w", err)
	}
	said := slices.Compact(slices.Sorted(slices.Values(words(wrong, document))))
	return badf("the values are not what the chart allows:\n  %s", strings.Join(said, "\n  "))
}

// printer writes what the library says itself.
var printer = message.NewPrinter(language.English)

// words are those of an error's leaves.
func words(wrong *jsonschema.ValidationError, schema any) []string {
	if len(wrong.Causes) > 0 {
		var all []string
		for _, cause := range wrong.Causes {
			all = append(all, words(cause, schema)...)
		}
		return all
	}
	path := dotted(wrong.InstanceLocation)
	switch k := wrong.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		var all []string
		for _, name := range k.Properties {
			all = append(all, fmt.Sprintf("%s: the chart has no such value; %s has %s", dotted(append(slices.Clone(wrong.InstanceLocation), name)), within(path), known(schema, wrong.SchemaURL)))
		}
		return all
	case *kind.Enum:
		return []string{fmt.Sprintf("%s: %s is not allowed; it is one of %s", path, quoted(k.Got), list(k.Want))}
	case *kind.Type:
		return []string{fmt.Sprintf("%s: %s is wanted, not %s", path, strings.Join(k.Want, " or "), k.Got)}
	case *kind.Required:
		return []string{fmt.Sprintf("%s: %s must be set", within(path), strings.Join(k.Missing, ", "))}
	default:
		return []string{fmt.Sprintf("%s: %s", path, wrong.ErrorKind.LocalizedString(printer))}
	}
}

// within names where a value stands.
func within(path string) string {
	if path == "" {
		return "the top level"
	}
	return path
}

// dotted is a path as --set takes it: a.b[0].c.
func dotted(path []string) string {
	var b strings.Builder
	for _, part := range path {
		if _, err := strconv.Atoi(part); err == nil {
			fmt.Fprintf(&b, "[%s]", part)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strings.ReplaceAll(part, ".", `\.`))
	}
	return b.String()
}

// known lists the properties that a schema has at an address.
func known(schema any, address string) string {
	_, pointer, _ := strings.Cut(address, "#")
	for _, part := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		if part == "" {
			continue
		}
		object, _ := schema.(map[string]any)
		schema = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	object, _ := schema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	if len(properties) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(maps.Keys(properties)), ", ")
}

func quoted(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

func list(all []any) string {
	var said []string
	for _, v := range all {
		said = append(said, quoted(v))
	}
	return strings.Join(said, ", ")
}
