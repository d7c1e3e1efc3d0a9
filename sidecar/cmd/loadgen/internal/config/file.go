package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

const maxFile = 1 << 20 // bytes of any file that the configuration names

// readFile is the [reader] of this machine's files.
func readFile(field, path, what string) ([]byte, error) {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil, unreadable(field, path, what, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("longer than %d bytes", maxFile)
	}
	if err != nil {
		return nil, unreadable(field, path, what, err)
	}
	return data, nil
}

func unreadable(field, path, what string, err error) error {
	if inner := new(os.PathError); errors.As(err, &inner) {
		err = inner.Err // the message already contains the path
	}
	return reword(field, path, what, fmt.Sprintf("cannot read %s: %v", path, err))
}

// worded is a field error with its own message.
type worded struct {
	*api.FieldError
	text string
}

// reword returns the [api.FieldError] of a value with another message than the usual one.
func reword(field, value, allowed, text string) error {
	return &worded{&api.FieldError{Field: field, Value: value, Allowed: allowed}, text}
}

func (e *worded) Error() string { return e.Field + ": " + e.text }
func (e *worded) Unwrap() error { return e.FieldError }

// file is a YAML file during parsing.
type file struct {
	path   string
	fields map[string]field
	values map[string]given
	lines  map[string]int // of every key so far
}

// parseFile returns the values of a YAML file by the names of their fields. Unknown and repeated keys, and invalid
// values, are refused with a *badValue; invalid YAML with an [api.FieldError].
func (m *model) parseFile(path string, data []byte) (map[string]given, error) {
	f := &file{path: path, fields: map[string]field{}, values: map[string]given{}, lines: map[string]int{}}
	for _, field := range m.fields {
		for _, name := range field.names() {
			f.fields[name] = field
		}
	}
	delete(f.fields, "config")
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	err := decoder.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil && !errors.Is(decoder.Decode(&second), io.EOF) {
		err = errors.New("more than one YAML document")
	}
	if err != nil {
		return nil, reword("config", path, "a YAML file", fmt.Sprintf("%s is not valid YAML: %v", path, err))
	}
	if err := f.section("", doc.Content[0]); err != nil {
		return nil, err
	}
	return f.values, nil
}

// section parses a mapping of fields and sections. It may be empty, as it is when all of its lines are commented out.
func (f *file) section(name string, node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode && node.Tag == "!!null" {
		return nil
	}
	if node.Kind != yaml.MappingNode {
		return f.bad(node, name, shape(node), "a section of fields")
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if err := f.entry(name, node.Content[i], node.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) entry(section string, key, value *yaml.Node) error {
	if key.Kind != yaml.ScalarNode {
		return f.bad(key, section, shape(key)+" as a key", "the name of a field")
	}
	if key.Value == "" {
		return f.bad(key, section, "an empty key", "the name of a field")
	}
	name := strings.TrimPrefix(section+"."+key.Value, ".")
	field, isField := f.fields[name]
	if isField {
		name = field.name
	}
	if line, twice := f.lines[name]; twice {
		return f.reworded(key, name, "a second value", "one value", fmt.Sprintf("set twice; first set in line %d", line))
	}
	f.lines[name] = key.Line
	if isField {
		return f.value(field, value)
	}
	if f.isSection(name) {
		return f.section(name, value)
	}
	if slices.ContainsFunc(new(Config).secrets(), func(s secret) bool { return s.name == name }) {
		return f.reworded(key, name, "a secret", "no secret",
			fmt.Sprintf("secrets are not allowed in this file; set %s or %s_file", variable(name), name))
	}
	return f.reworded(key, name, name, "a known field", "unknown field"+suggest(name, slices.Collect(maps.Keys(f.fields))))
}

func (f *file) isSection(name string) bool {
	for field := range f.fields {
		if strings.HasPrefix(field, name+".") {
			return true
		}
	}
	return false
}

func (f *file) value(field field, node *yaml.Node) error {
	if field.structured() && node.Kind != yaml.ScalarNode {
		var plain any
		err := node.Decode(&plain) // aliases included
		text, invalid := json.Marshal(plain)
		if err := cmp.Or(err, invalid); err != nil {
			reason := strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n  ")
			return f.reworded(node, field.name, shape(node), field.allowed(), reason)
		}
		f.values[field.name] = given{value: string(text), from: f.place(node)}
		return nil
	}
	items := []*yaml.Node{node}
	list := field.flag.Target.Kind() == reflect.Slice && !field.structured()
	pairs := list && node.Kind == yaml.MappingNode && strings.HasSuffix(field.flag.Tag.Get("form"), "header")
	if list && node.Kind == yaml.SequenceNode || pairs {
		items = node.Content
	}
	texts := make([]string, len(items))
	for i, item := range items {
		if item.Kind != yaml.ScalarNode || item.Tag == "!!null" {
			return f.bad(item, field.name, shape(item), field.allowed())
		}
		texts[i] = item.Value
	}
	g := given{value: strings.Join(texts, ","), from: f.place(node)}
	switch {
	case pairs:
		for i := 0; i < len(texts); i += 2 {
			g.items = append(g.items, texts[i]+"="+texts[i+1])
		}
	case list && node.Kind == yaml.SequenceNode && f.path == "": // in a structure
		g.items = texts
	}
	f.values[field.name] = g
	return nil
}

func (f *file) place(node *yaml.Node) string { return fmt.Sprintf("%s, line %d", f.path, node.Line) }

func (f *file) bad(node *yaml.Node, name, value, allowed string) error {
	if name == "" {
		name = "config"
	}
	return &badValue{api.Refuse(name, value, allowed), f.place(node)}
}

func (f *file) reworded(node *yaml.Node, name, value, allowed, text string) error {
	return &badValue{reword(name, value, allowed, text), f.place(node)}
}

// shape names the kind of a node in place of a plain value.
func shape(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	if node.Tag == "!!null" {
		return "an empty value"
	}
	return "a plain value"
}
