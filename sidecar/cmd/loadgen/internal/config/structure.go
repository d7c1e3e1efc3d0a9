package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

// structure is a value that is a list or an object in the file, and JSON where it is a text. The error of UnmarshalText
// is an [api.FieldError] whose field is relative to the value, such as "[0].name", or errForm.
type structure interface {
	encoding.TextUnmarshaler
	kinds() []string // in a JSON schema
}

// Arms are the ways of serving to compare. Arms that are parsed follow those before.
type Arms []Arm

// Allowed describes the texts that [Arms.UnmarshalText] accepts.
func (Arms) Allowed() string {
	fields := slices.DeleteFunc(namesOf(&Arm{}), func(name string) bool { return name == "name" })
	return "a list of arms, each with a name and as needed " + strings.Join(fields, ", ") + "; or NAME=URL,NAME=URL"
}

func (Arms) kinds() []string { return []string{"string", "array"} }

func (a Arms) String() string { return canonical(a, len(a) > 0) }

// UnmarshalText parses a list of arms, which is YAML or JSON in brackets, or NAME=URL,NAME=URL. "=URL" may be missing:
// such an arm has the URL of target.url. Files and variables that headers refer to are not read.
func (a *Arms) UnmarshalText(text []byte) error {
	entries, err := entriesOf(text, func(entry string) []string {
		name, address, _ := strings.Cut(entry, "=")
		return []string{"name", strings.TrimSpace(name), "url", strings.TrimSpace(address)}
	})
	if err == nil && len(entries) == 0 {
		err = api.Refuse("", "an empty list", "at least one arm")
	}
	for i, entry := range entries {
		var arm Arm
		at := fmt.Sprintf("[%d]", i)
		if err == nil {
			err = setObject(at, entry, &arm)
		}
		switch {
		case err != nil:
			return err
		case arm.Name == "":
			return api.Require(at+".name", api.AllowedArm)
		case slices.ContainsFunc(*a, func(e Arm) bool { return e.Name == arm.Name }):
			return api.Refuse(fmt.Sprintf("[%d].name", len(*a)), arm.Name, "a name that no other arm has")
		}
		for _, header := range arm.Headers { // its url has the host
			if name, _, _ := strings.Cut(header, "="); strings.EqualFold(name, "Host") {
				return api.Refuse(at+".headers", name, "the name of another HTTP header, since the url has the host")
			}
		}
		*a = append(*a, arm)
	}
	return err
}

// Program is a program with its arguments.
type Program []string

// Allowed describes the texts that [Program.UnmarshalText] accepts.
func (Program) Allowed() string { return "a program with its arguments" }

func (Program) kinds() []string { return []string{"string", "array"} }

func (p Program) String() string { return canonical([]string(p), len(p) > 0) }

// UnmarshalText parses a list of words, or words between spaces.
func (p *Program) UnmarshalText(text []byte) error {
	words := strings.Fields(string(text))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		words = nil
		if err := yaml.Unmarshal(text, &words); err != nil {
			return errForm
		}
	}
	if len(words) == 0 || words[0] == "" || strings.HasPrefix(words[0], "{") {
		return errForm
	}
	for i, word := range words {
		at := fmt.Sprintf("[%d]", i)
		if strings.Contains(word, "\x00") {
			return api.Refuse(at, strconv.Quote(word), `a word without the character \x00`)
		}
		if err := checkPlaceholders(at, word, armPlaceholders); err != nil {
			return err
		}
	}
	*p = words
	return nil
}

// Call is an HTTP request that switches an arm, or empties caches.
type Call struct {
	Method  string   `json:"method,omitempty" form:"method"` // empty: POST
	URL     string   `json:"url" form:"text"`
	Headers []string `json:"headers,omitempty" form:"request_header"`
	Body    string   `json:"body,omitempty" form:"text"`
}

// Allowed describes the texts that [Call.UnmarshalText] accepts.
func (Call) Allowed() string { return "METHOD URL, or method, url, headers and body" }

func (Call) kinds() []string { return []string{"string", "object"} }

func (c Call) String() string { return canonical(c, c.URL != "") }

// UnmarshalText parses METHOD URL, URL, or an object.
func (c *Call) UnmarshalText(text []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return errForm
	}
	all, err := callsOf(text, armPlaceholders)
	if err == nil {
		*c = all[0]
	} else if bad := new(api.FieldError); errors.As(err, &bad) {
		bad.Field = strings.TrimPrefix(bad.Field, "[0]")
	}
	return err
}

// Calls are HTTP requests that empty caches. Those that are parsed follow those before.
type Calls []Call

// Allowed describes the texts that [Calls.UnmarshalText] accepts.
func (Calls) Allowed() string {
	return "a list of requests, each METHOD URL, or method, url, headers and body"
}

func (Calls) kinds() []string { return []string{"string", "array"} }

func (c Calls) String() string { return canonical([]Call(c), len(c) > 0) }

// UnmarshalText parses a list of requests, or one.
func (c *Calls) UnmarshalText(text []byte) error {
	all, err := callsOf(text, coldPlaceholders)
	*c = append(*c, all...)
	return err
}

// callsOf parses a list of requests, or one. filled are the placeholders that they may contain.
func callsOf(text []byte, filled []string) (all []Call, err error) {
	if trimmed := bytes.TrimSpace(text); !bytes.HasPrefix(trimmed, []byte("[")) {
		text = fmt.Appendf(nil, "[%s]", trimmed)
		if !bytes.HasPrefix(trimmed, []byte("{")) {
			text = fmt.Appendf(nil, "[%q]", trimmed)
		}
	}
	entries, err := entriesOf(text, nil)
	if err == nil && len(entries) == 0 {
		err = api.Refuse("", "an empty list", "at least one request")
	}
	for i, entry := range entries {
		var c Call
		if entry.Kind == yaml.ScalarNode {
			method, address, found := strings.Cut(strings.TrimSpace(entry.Value), " ")
			if !found {
				method, address = "", method
			}
			entry = mapping("method", method, "url", strings.TrimSpace(address))
		}
		at := fmt.Sprintf("[%d]", i)
		if err = setObject(at, entry, &c); err == nil {
			err = c.check(at, filled)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, err
}

func (c Call) check(at string, filled []string) error {
	if err := checkTemplate(at+".url", c.URL, filled); err != nil {
		return err
	}
	if err := checkPlaceholders(at+".body", c.Body, filled); err != nil {
		return err
	}
	for _, header := range c.Headers {
		if err := checkPlaceholders(at+".headers", header, filled); err != nil {
			return err
		}
	}
	return nil
}

// entriesOf parses a list in brackets, which is YAML, of which JSON is a part; or a text with commas, whose parts plain
// turns into the names and values of an object.
func entriesOf(text []byte, plain func(entry string) []string) (entries []*yaml.Node, err error) {
	if plain != nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")) {
		return nil, errForm
	}
	if plain != nil && !bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		for entry := range strings.SplitSeq(string(text), ",") {
			entries = append(entries, mapping(plain(entry)...))
		}
		return entries, nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil || doc.Content[0].Kind != yaml.SequenceNode {
		return nil, errForm
	}
	return doc.Content[0].Content, nil
}

// mapping returns an object with texts, of which it omits the empty ones.
func mapping(pairs ...string) *yaml.Node {
	object := &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			for _, text := range pairs[i : i+2] {
				object.Content = append(object.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text})
			}
		}
	}
	return object
}

// setObject sets the fields of a struct that a node names. at is the place of the node, with which the field in an
// error begins.
func setObject(at string, node *yaml.Node, to any) error {
	fields := fieldsOf(to)
	if node.Kind != yaml.MappingNode {
		return api.Refuse(at, shape(node), "an object with the fields "+enumerate(namesOf(to)))
	}
	f := &file{fields: fields, values: map[string]given{}, lines: map[string]int{}}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if _, known := fields[key.Value]; !known {
			return api.Refuse(at, fmt.Sprintf("unknown field %q", key.Value), "one of the fields "+enumerate(namesOf(to)))
		}
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			continue
		}
		object := value.Kind == yaml.MappingNode && fields[key.Value].structured() // which checks its own texts
		if err := checkTexts("."+key.Value, value); err != nil && !object {
			return within(at, err)
		}
		if err := f.entry("", key, value); err != nil {
			return within(at, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if err := fields[name].give(fields[name].flag.Target, f.values[name]); err != nil {
			return within(at, err)
		}
	}
	return nil
}

// within returns a field's error with the place of the object that has the field.
func within(at string, err error) error {
	bad := new(api.FieldError)
	if !errors.As(err, &bad) {
		return err
	}
	return api.Refuse(at+"."+strings.TrimPrefix(bad.Field, "."), bad.Value, bad.Allowed)
}

// checkTexts refuses numbers, which YAML would change. The error is an [api.FieldError].
func checkTexts(at string, node *yaml.Node) error {
	const text = "a text in quotes"
	for i, child := range node.Content {
		place, value, allowed := fmt.Sprintf("%s[%d]", at, i), child.Value, text
		if node.Kind == yaml.MappingNode {
			place, value, allowed = at, node.Content[i-i%2].Value+" (value hidden)", text+" as the value"
		}
		if child.Kind != yaml.ScalarNode || child.Tag != "!!str" {
			return api.Refuse(place, value, allowed)
		}
	}
	if node.Kind == yaml.ScalarNode && node.Tag != "!!str" {
		return api.Refuse(at, node.Value, text)
	}
	return nil
}

// namesOf returns the names of the fields of a struct, in order.
func namesOf(of any) []string { return slices.Sorted(maps.Keys(fieldsOf(of))) }

// canonical returns a structured value as the field's text, empty unless it is set.
func canonical(v any, isSet bool) string {
	if !isSet {
		return ""
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // it consists of texts
	return strings.TrimSpace(b.String())
}
