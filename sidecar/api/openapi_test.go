package api_test

import (
	"context"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

func document(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	require.NoError(t, err)
	require.NoError(t, doc.Validate(context.Background()))
	return doc
}

// roots are the types of the calls' bodies and answers; every other type of the
// document is reached from them.
var roots = []any{
	api.Status{},
	api.Snapshot{},
	api.StartRequest{},
	api.StopRequest{},
	api.WorkloadPatch{},
	api.ModeRequest{},
	api.History{},
	api.DecisionList{},
	api.ConversationList{},
	api.Starter{},
	api.EventList{},
	api.BaselineList{},
	api.SettingsPatch{},
	api.SimulationRequest{},
	api.SimulationList{},
	api.SimulationResult{},
	api.SimulationEnd{},
	api.SweepRequest{},
	api.SweepList{},
	api.Sweep{},
	api.SweepPatch{},
	api.SweepBaselineRequest{},
	api.SweepOutlook{},
	api.Shadow{},
	api.Twin{},
	api.TwinRequest{},
	api.ShowcaseRequest{},
	api.SessionRequest{},
	api.Session{},
	api.Problem{},
}

// The document and the types say the same: every property on both sides, of the
// same type, required where Go always writes it, and no schema without a type.
func TestSchemasAgreeWithTypes(t *testing.T) {
	schemas := document(t).Components.Schemas
	seen := map[string]bool{}
	for _, root := range roots {
		agree(t, schemas, reflect.TypeOf(root), seen)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(schemas)), slices.Collect(maps.Keys(seen)), "schemas and types")
}

func agree(t *testing.T, schemas openapi3.Schemas, typ reflect.Type, seen map[string]bool) {
	name := typ.Name()
	if seen[name] {
		return
	}
	seen[name] = true
	require.Contains(t, schemas, name, "the document lacks a schema")
	schema := schemas[name].Value
	if typ.Kind() == reflect.String {
		require.ElementsMatch(t, constants(t)[name], schema.Enum, "the values of %s", name)
		return
	}
	var properties, required []string
	for f := range fields(typ, len(schema.AllOf) > 0) {
		if f.Anonymous { // the document has it as the first of two parts
			require.Equal(t, "#/components/schemas/"+f.Name, schema.AllOf[0].Ref, name)
			agree(t, schemas, f.Type, seen)
			schema = schema.AllOf[1].Value
			continue
		}
		tag := strings.Split(f.Tag.Get("json"), ",")
		if tag[0] == "-" {
			continue
		}
		properties = append(properties, tag[0])
		if !slices.Contains(tag, "omitempty") && !slices.Contains(tag, "omitzero") {
			required = append(required, tag[0])
		}
		require.Contains(t, schema.Properties, tag[0], "%s in the document", name)
		where := name + "." + tag[0]
		agreeProperty(t, schemas, where, schema.Properties[tag[0]], f.Type, slices.Contains(tag, "string"), seen)
	}
	require.ElementsMatch(t, properties, slices.Collect(maps.Keys(schema.Properties)), "the properties of %s", name)
	require.ElementsMatch(t, required, schema.Required, "what %s requires", name)
}

// fields are those of a struct, and those of what it embeds in its place unless the document has that as a part.
func fields(typ reflect.Type, parts bool) iter.Seq[reflect.StructField] {
	return func(yield func(reflect.StructField) bool) {
		for _, f := range reflect.VisibleFields(typ) {
			if (f.Anonymous == parts || !f.Anonymous) && (len(f.Index) == 1 || !parts) && !yield(f) {
				return
			}
		}
	}
}

func agreeProperty(t *testing.T, schemas openapi3.Schemas, where string, ref *openapi3.SchemaRef, typ reflect.Type, asString bool, seen map[string]bool) {
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.PkgPath() == reflect.TypeFor[api.Problem]().PkgPath() {
		require.Equal(t, "#/components/schemas/"+typ.Name(), ref.Ref, where)
		agree(t, schemas, typ, seen)
		return
	}
	require.Empty(t, ref.Ref, where)
	schema := ref.Value
	require.True(t, schema.Type.Is(jsonType(typ, asString)), "%s is %v in the document, %s in Go", where, schema.Type, typ)
	switch typ.Kind() {
	case reflect.Slice:
		agreeProperty(t, schemas, where+"[]", schema.Items, typ.Elem(), false, seen)
	case reflect.Map:
		agreeProperty(t, schemas, where+"{}", schema.AdditionalProperties.Schema, typ.Elem(), false, seen)
	case reflect.Array:
		require.Len(t, schema.PrefixItems, typ.Len(), where)
	case reflect.Struct:
		require.Equal(t, "date-time", schema.Format, where)
	}
}

func jsonType(typ reflect.Type, asString bool) string {
	switch typ.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		if asString {
			return "string"
		}
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		return "array"
	case reflect.Map:
		return "object"
	case reflect.Struct:
		if typ != reflect.TypeFor[time.Time]() {
			return "unknown"
		}
	}
	return "string"
}

// constants reads the values of the package's string types from its source.
func constants(t *testing.T) map[string][]any {
	values := map[string][]any{}
	for _, name := range []string{"types.go", "simulations.go", "sweeps.go", "shadow.go", "twin.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok {
				if typ, ok := spec.Type.(*ast.Ident); ok {
					value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					values[typ.Name] = append(values[typ.Name], value)
				}
			}
			return true
		})
	}
	return values
}

// What nobody filled is written as the document wants it: lists and maps empty, not null.
func TestEmptyListsAreNotNull(t *testing.T) {
	for _, v := range []any{
		api.Snapshot{Lanes: []api.LaneSnapshot{{Cluster: api.Cluster{Workers: []api.Worker{{}}}}}},
		api.Snapshot{},
		api.Status{Lanes: []api.LaneStatus{{}}},
		api.Status{},
		api.History{},
		api.DecisionList{},
		api.DecisionList{Decisions: []api.RoutingDecision{{}}},
		api.ConversationList{},
		api.EventList{},
		api.BaselineList{},
		api.BaselineList{Baselines: []api.Baseline{{}}},
		api.SimulationList{},
		api.SimulationList{Profiles: []api.SimulationProfile{{}}},
		api.SimulationResult{},
		api.SimulationEnd{},
		api.SweepList{},
		api.SweepList{Sweeps: []api.SweepSummary{{}}},
		api.Sweep{},
		api.Sweep{Trial: &api.TrialState{}, Capacity: &api.Capacity{}},
		api.Sweep{Capacity: &api.Capacity{Modes: []api.ModeCapacity{{}}}},
		api.State{Sweep: &api.SweepSummary{}},
		api.Shadow{},
		api.Twin{Showcase: &api.Showcase{}},
	} {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		require.NotContains(t, string(text), "null", "%T", v)
	}
}
