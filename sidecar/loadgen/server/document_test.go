package server

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"kvbooth/sidecar/api"
)

var update = flag.Bool("update", false, "rewrite the OpenAPI document")

const about = `Starts, controls and monitors a workload of multi-turn conversations against an OpenAI-compatible server.

Units: times of day are RFC 3339; durations and latencies are seconds; ratios are 0 to 1. An absent number is
unknown, not zero. 64-bit identifiers are strings. Lists and maps are never null.

Every error is an RFC 9457 problem document:

| status | means |
|---|---|
| 400 | the body is not a single JSON object, or did not arrive whole |
| 401 | the token is missing or wrong |
| 403 | the request comes from another origin (` + "`Origin`" + `) |
| 404, 405 | no such resource, or no such method on it |
| 408 | the body did not arrive within 30 s |
| 409 | not possible in the current state |
| 413 | the body is too large: 64 KiB, a baseline 1 MiB |
| 415 | a write without ` + "`Content-Type: application/json`" + ` |
| 421 | the name in ` + "`Host` is not allowed; add it to `hosts`" + ` |
| 422 | an invalid field: ` + "`field`, `value` and what is `allowed`" + ` |
| 429 | too many wrong tokens; see ` + "`Retry-After`" + ` |
| 503 | temporarily unavailable, or interrupted before the call was complete |

Unknown fields and unknown query parameters are rejected.
`

// The committed document is the one generated from the routes, the types of the API and their comments.
func TestDocumentIsCurrent(t *testing.T) {
	const file = "../../api/openapi.yaml"
	doc := newDraft(t)
	for _, rt := range newServer(t, &recorder{}, nil).routes() {
		method, path, _ := strings.Cut(rt.pattern, " ")
		doc.AddOperation(path, method, doc.operation(rt, path))
	}
	text := encode(t, doc.T)
	read, err := openapi3.NewLoader().LoadFromData([]byte(text))
	require.NoError(t, err)
	require.NoError(t, read.Validate(t.Context()))
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, text, string(have), "go test ./sidecar/loadgen/server -run Document -update writes it anew")
}

// draft is an OpenAPI document under construction.
type draft struct {
	*openapi3.T

	texts  map[string]string // the comments of types and, as Type.Field, of their fields
	words  map[string][]any  // the constants of types
	closed map[string]bool   // types of request bodies, which allow no other fields
}

func newDraft(t *testing.T) *draft {
	bearer := func(text string) *openapi3.SecuritySchemeRef {
		scheme := openapi3.NewSecurityScheme().WithType("http").WithScheme("bearer").WithDescription(text)
		return &openapi3.SecuritySchemeRef{Value: scheme}
	}
	d := &draft{
		T: &openapi3.T{
			OpenAPI: "3.1.0",
			Info: &openapi3.Info{
				Title: "KV Booth load generator", Version: "1", Description: about,
				License: &openapi3.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
			},
			Security: openapi3.SecurityRequirements{{"token": {}}, {"session": {}}},
			Tags: openapi3.Tags{
				{Name: "state", Description: "Current state"},
				{Name: "control", Description: "Operator actions"},
				{Name: "results", Description: "Recorded results"},
				{Name: "service", Description: "Sessions, health and metrics"},
			},
			Components: &openapi3.Components{
				Schemas: openapi3.Schemas{},
				SecuritySchemes: openapi3.SecuritySchemes{
					"token":        bearer("Required if a token is configured. It is never part of a URL."),
					"metricsToken": bearer("Opens `/metrics` and nothing else."),
					"session": {Value: openapi3.NewSecurityScheme().WithType("apiKey").WithIn("cookie").WithName(cookieName).
						WithDescription("What `POST /api/v1/session` sets, for the page.")},
				},
			},
		},
		texts: map[string]string{}, words: map[string][]any{}, closed: map[string]bool{},
	}
	d.readComments(t)
	problem := openapi3.NewResponse().WithDescription("An error")
	problem.Content = openapi3.NewContentWithSchemaRef(d.schema(reflect.TypeFor[api.Problem]()),
		[]string{"application/problem+json"})
	d.Components.Responses = openapi3.ResponseBodies{"Problem": {Value: problem}}
	for _, kind := range []any{api.SimulationPoint{}, api.SimulationProgress{}, api.SimulationEnd{}} { // of events
		d.schema(reflect.TypeOf(kind))
	}
	return d
}

// readComments reads the comments and constants of the API's package.
func (d *draft) readComments(t *testing.T) {
	files, err := filepath.Glob("../../api/*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(gotoken.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				for _, spec := range gen.Specs {
					d.readSpec(gen, spec)
				}
			}
		}
	}
}

func (d *draft) readSpec(decl *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		name := spec.Name.Name
		d.texts[name] = sentence(name, oneLine(decl.Doc.Text())) + d.texts[name]
		if s, ok := spec.Type.(*ast.StructType); ok {
			for _, f := range s.Fields.List {
				for _, n := range f.Names {
					d.texts[name+"."+n.Name] = oneLine(f.Doc.Text() + f.Comment.Text())
				}
			}
		}
	case *ast.ValueSpec:
		typ, ok := spec.Type.(*ast.Ident)
		if !ok || decl.Tok != gotoken.CONST {
			return
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok { // counted by iota, which is no word of the API
			return
		}
		word, _ := strconv.Unquote(value.Value)
		d.words[typ.Name] = append(d.words[typ.Name], word)
		if text := oneLine(spec.Doc.Text() + spec.Comment.Text()); text != "" {
			d.texts[typ.Name] += fmt.Sprintf("\n- `%s`: %s", word, text)
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// sentence returns the comment of a type without the type's name.
func sentence(name, comment string) string {
	text, ok := strings.CutPrefix(comment, name+" ")
	if !ok {
		return comment
	}
	for _, verb := range []string{"is ", "are ", "says "} {
		text = strings.TrimPrefix(text, verb)
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// operation returns the document's operation of a route.
func (d *draft) operation(rt route, path string) *openapi3.Operation {
	op := &openapi3.Operation{OperationID: rt.id, Tags: []string{rt.tag}, Summary: rt.summary, Description: rt.details}
	for _, match := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
		op.AddParameter(openapi3.NewPathParameter(match[1]).WithSchema(openapi3.NewStringSchema()))
	}
	if rt.query != nil {
		for _, f := range fieldsOf(rt.query) {
			op.AddParameter(d.parameter(f))
		}
	}
	switch rt.access {
	case probe, public:
		op.Security = &openapi3.SecurityRequirements{}
	case scrape:
		op.Security = &openapi3.SecurityRequirements{{}, {"metricsToken": {}}, {"token": {}}, {"session": {}}}
	case write:
		login := openapi3.NewStringSchema().WithMinLength(1).WithMaxLength(api.MaxLogin)
		op.AddParameter(openapi3.NewHeaderParameter(api.UserHeader).WithSchema(login).
			WithDescription("the login recorded in events; not used with a session, whose events record the page"))
	}
	if rt.body != nil {
		d.close(rt.body)
		body := openapi3.NewRequestBody().WithRequired(true).WithJSONSchemaRef(d.schema(rt.body))
		op.RequestBody = &openapi3.RequestBodyRef{Value: body}
	}
	problem := *d.Components.Responses["Problem"]
	problem.Ref = "#/components/responses/Problem"
	op.Responses = openapi3.NewResponses(openapi3.WithStatus(rt.status, &openapi3.ResponseRef{Value: d.response(rt)}))
	op.Responses.Set("default", &problem)
	if rt.id == "importBaseline" {
		d.importForms(op)
	}
	return op
}

// importForms adds the forms of a baseline, and the answer to a dry run.
func (d *draft) importForms(op *openapi3.Operation) {
	other := openapi3.NewObjectSchema().WithAnyAdditionalProperties()
	other.Description = "What another program writes"
	table := openapi3.NewStringSchema()
	table.Description = "with commas or tabs; the TSV of a report, too"
	content := op.RequestBody.Value.Content
	form := openapi3.NewAnyOfSchema()
	form.AnyOf = openapi3.SchemaRefs{content["application/json"].Schema, other.NewRef()}
	content["application/json"].Schema = form.NewRef()
	content["text/csv"] = openapi3.NewMediaType().WithSchema(table)
	dry := openapi3.NewResponse().WithDescription("OK").WithContent(op.Responses.Status(http.StatusCreated).Value.Content)
	op.Responses.Set("200", &openapi3.ResponseRef{Value: dry})
}

func (d *draft) response(rt route) *openapi3.Response {
	res := openapi3.NewResponse().WithDescription(http.StatusText(rt.status))
	content := openapi3.Content{}
	if rt.answer != nil {
		content = openapi3.NewContentWithJSONSchemaRef(d.schema(rt.answer))
	}
	switch rt.media {
	case "":
	case "*/*":
		content[rt.media] = openapi3.NewMediaType()
	case "application/json", "application/yaml":
		content[rt.media] = openapi3.NewMediaType().WithSchema(openapi3.NewObjectSchema())
	default:
		content[rt.media] = openapi3.NewMediaType().WithSchema(openapi3.NewStringSchema())
	}
	if len(content) > 0 {
		res.Content = content
	}
	header := map[int]string{http.StatusCreated: "Location", http.StatusNoContent: "Set-Cookie"}[rt.status]
	if header != "" {
		schema := openapi3.NewStringSchema()
		if header == "Location" {
			schema = schema.WithFormat("uri-reference")
		}
		value := openapi3.Header{Parameter: openapi3.Parameter{Required: true, Schema: schema.NewRef()}}
		res.Headers = openapi3.Headers{header: {Value: &value}}
	}
	return res
}

// field is a field of a struct or of a type that it embeds.
type field struct {
	reflect.StructField
	owner string
}

func fieldsOf(t reflect.Type) (all []field) {
	for f := range t.Fields() {
		switch {
		case f.Anonymous:
			all = append(all, fieldsOf(f.Type)...)
		case f.Tag.Get("json") != "-":
			all = append(all, field{f, t.Name()})
		}
	}
	return all
}

func (f field) json() (name string, options []string) {
	parts := strings.Split(f.Tag.Get("json"), ",")
	return parts[0], parts[1:]
}

func (d *draft) parameter(f field) *openapi3.Parameter {
	p := openapi3.NewQueryParameter(f.Tag.Get("query")).WithRequired(f.Tag.Get("required") == "true")
	p.Schema = d.property(f)
	p.Description, p.Schema.Value.Description = p.Schema.Value.Description, ""
	if text := f.Tag.Get("default"); text != "" {
		p.Schema.Value.Default = text
		if n, err := strconv.Atoi(text); err == nil {
			p.Schema.Value.Default = n
		}
	}
	return p
}

// property returns the schema of a field: of its type, within the limits of its tags.
func (d *draft) property(f field) *openapi3.SchemaRef {
	ref := d.schema(f.Type)
	s := ref.Value
	if _, options := f.json(); slices.Contains(options, "string") {
		s.Type, s.Format, s.Pattern = &openapi3.Types{"string"}, "", "^[0-9]{1,20}$"
	}
	name, _ := f.json()
	var setting api.WorkloadSetting
	limited, ok := ofWorkload[f.owner]
	if ok {
		setting, _ = api.WorkloadSettingOf(name)
	}
	s.Description = cmp.Or(d.texts[f.owner+"."+f.Name], setting.Help)
	number := func(tag string) *float64 {
		if n, err := strconv.ParseFloat(f.Tag.Get(tag), 64); err == nil {
			return &n
		}
		return nil
	}
	length := func(tag string) *uint64 {
		if n := number(tag); n != nil {
			return new(uint64(*n))
		}
		return nil
	}
	s.MinItems = max(s.MinItems, *cmp.Or(length("minItems"), new(uint64)))
	s.MaxItems = cmp.Or(length("maxItems"), s.MaxItems)
	if s.Items != nil && (s.Items.Value.Type != nil || s.Items.Value.AnyOf != nil) { // a list has the limits of its items
		s = s.Items.Value
	}
	if s.AnyOf != nil { // a level: limits are those of numbers of conversations
		s = s.AnyOf[0].Value
	}
	for _, word := range wordsOf(f) {
		s.Enum = append(s.Enum, word)
	}
	if s.Type == nil { // another type, which numbers outside this field have, too
		if limited {
			s.Description = strings.TrimPrefix(s.Description+"; "+innerLimits(name, f.Type), "; ")
			s.Description = strings.TrimSuffix(s.Description, "; ")
		}
		return ref
	}
	s.Min, s.Max, s.ExclusiveMin.Value = number("minimum"), number("maximum"), number("exclusiveMinimum")
	if s.Max == nil && limited {
		setLimit(s, setting.Limit)
	}
	s.MinLength, s.MaxLength = *cmp.Or(length("minLength"), new(uint64)), length("maxLength")
	s.Pattern, s.Format = cmp.Or(f.Tag.Get("pattern"), s.Pattern), cmp.Or(f.Tag.Get("format"), s.Format)
	return ref
}

// ofWorkload names the types whose fields are settings of the workload, and reports whether their limits apply.
var ofWorkload = map[string]bool{
	"StartRequest": true, "WorkloadPatch": true, "SimulationRequest": true, "State": false, "WorkloadShape": false,
}

// level is a single value in JSON.
var level = reflect.TypeFor[api.Level]()

// innerLimits describes the limits of a setting's fields, which are in their own type.
func innerLimits(name string, t reflect.Type) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == level {
		return ""
	}
	var all []string
	for f := range t.Fields() {
		inner, _ := field{StructField: f}.json()
		if s, ok := api.WorkloadSettingOf(name + "." + inner); ok {
			all = append(all, inner+" "+s.Limit.String())
		}
	}
	return strings.Join(all, ", ")
}

// setLimit sets the limit of a number; one without a maximum allows all.
func setLimit(s *openapi3.Schema, l api.Limit) {
	switch {
	case l.Max == 0:
	case l.Above:
		s.ExclusiveMin.Value, s.Max = &l.Min, &l.Max
	default:
		s.Min, s.Max = &l.Min, &l.Max
	}
}

// wordsOf returns the values of a field, where they are fewer than those of its type.
func wordsOf(f field) []string {
	if f.owner == "SweepRequest" && f.Name == "Primary" {
		return api.SweepMetrics
	}
	return strings.FieldsFunc(f.Tag.Get("enum"), func(r rune) bool { return r == ',' })
}

// schema returns the schema of a type. Types of the API are references.
func (d *draft) schema(t reflect.Type) *openapi3.SchemaRef {
	if t.Kind() == reflect.Pointer {
		return d.schema(t.Elem())
	}
	if t == level {
		rate := openapi3.NewStringSchema().WithPattern(`^[0-9]+(\.[0-9]+)?/s$`)
		return openapi3.NewAnyOfSchema(openapi3.NewIntegerSchema(), rate).NewRef()
	}
	if own := t.PkgPath() == reflect.TypeFor[api.Problem]().PkgPath(); own && t.Kind() != reflect.Slice &&
		t.Kind() != reflect.Map {
		d.component(t)
		return (&openapi3.Schema{Extensions: map[string]any{"$ref": "#/components/schemas/" + t.Name()}}).NewRef()
	}
	s := openapi3.NewSchema()
	switch t.Kind() {
	case reflect.Bool:
		s = openapi3.NewBoolSchema()
	case reflect.Int, reflect.Uint64:
		s = openapi3.NewIntegerSchema()
	case reflect.Int64:
		s = openapi3.NewInt64Schema()
	case reflect.Float64:
		s.Type = &openapi3.Types{"number"}
	case reflect.String:
		s = openapi3.NewStringSchema()
	case reflect.Slice:
		s = openapi3.NewArraySchema()
		s.Items = d.schema(t.Elem())
	case reflect.Array:
		s = openapi3.NewArraySchema().WithMinItems(int64(t.Len())).WithMaxItems(int64(t.Len()))
		s.PrefixItems = slices.Repeat(openapi3.SchemaRefs{d.schema(t.Elem())}, t.Len())
	case reflect.Map:
		s = openapi3.NewObjectSchema()
		s.AdditionalProperties.Schema = d.schema(t.Elem())
		if t.Key().PkgPath() != "" {
			s.PropertyNames = d.schema(t.Key())
		}
	case reflect.Struct:
		if t != reflect.TypeFor[time.Time]() {
			panic("no schema for " + t.String())
		}
		s = openapi3.NewDateTimeSchema()
	}
	return s.NewRef()
}

// component adds a type of the API.
func (d *draft) component(t reflect.Type) {
	name := t.Name()
	if d.Components.Schemas[name] != nil {
		return
	}
	s := openapi3.NewStringSchema().WithEnum(d.words[name]...)
	d.Components.Schemas[name] = s.NewRef()
	s.Description = d.texts[name]
	if t.Kind() != reflect.Struct {
		return
	}
	s.Type, s.Properties = &openapi3.Types{"object"}, openapi3.Schemas{}
	for _, f := range fieldsOf(t) {
		name, options := f.json()
		s.Properties[name] = d.property(f)
		if !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero") {
			s.Required = append(s.Required, name)
			if list := f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map; list && f.Type.PkgPath() == "" {
				panic(t.Name() + "." + f.Name + " may be null: make it an api.List or an api.Map")
			}
		}
	}
}

// close forbids other fields in a type, and in its fields' types.
func (d *draft) close(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		d.close(t.Elem())
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[api.Problem]().PkgPath() || d.closed[t.Name()] || t == level {
			return
		}
		d.closed[t.Name()] = true
		d.component(t)
		d.Components.Schemas[t.Name()].Value.WithoutAdditionalProperties()
		for _, f := range fieldsOf(t) {
			d.close(f.Type)
		}
	}
}

// encode writes a document, with short parts in one line each.
func encode(t *testing.T, doc *openapi3.T) string {
	text, err := json.Marshal(doc)
	require.NoError(t, err)
	var root yaml.Node // JSON is YAML
	require.NoError(t, yaml.Unmarshal(text, &root))
	parts := root.Content[0]
	layOut(parts)
	var out strings.Builder
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	require.NoError(t, e.Encode(ordered(parts)))
	return out.String()
}

// ordered sorts the parts of a document in the order of reading.
func ordered(parts *yaml.Node) *yaml.Node {
	inOrder := &yaml.Node{Kind: yaml.MappingNode}
	for _, name := range []string{"openapi", "info", "security", "tags", "paths", "components"} {
		for i := 0; i < len(parts.Content); i += 2 {
			if parts.Content[i].Value == name {
				inOrder.Content = append(inOrder.Content, parts.Content[i], parts.Content[i+1])
			}
		}
	}
	return inOrder
}

// layOut sets the style of a node, and returns its length in one line.
func layOut(n *yaml.Node) (length int) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode {
		if slices.Contains([]string{"on", "off", "yes", "no"}, n.Value) { // booleans in older YAML
			n.Style = yaml.DoubleQuotedStyle
		}
		return len(n.Value) + 4 + 100*strings.Count(n.Value, "\n")
	}
	for _, part := range n.Content {
		length += layOut(part)
	}
	if length < 140 {
		n.Style = yaml.FlowStyle
	}
	return length
}
