package api_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The front end has what forms show of the workload's settings from here.
func TestTypeScriptHasWorkloadSettings(t *testing.T) {
	const file = "../../src/client/workload.ts"
	var text strings.Builder
	text.WriteString(`
/** What is the same of a setting of a workload in every form. */
export interface WorkloadSetting {
  readonly label: string;
  readonly unit?: string;
  /** What 0 means. */
  readonly zero?: string;
  /** Only whole numbers are valid. */
  readonly whole?: boolean;
}

const table = {
`)
	kinds, patched := patchKinds(), []string{}
	for _, s := range api.WorkloadSettings {
		key := s.Key
		if strings.Contains(key, ".") {
			key = "'" + key + "'"
		}
		fmt.Fprintf(&text, "  %s: { label: '%s'", key, s.Label)
		if s.Limit.Unit != "" {
			fmt.Fprintf(&text, ", unit: '%s'", s.ShortUnit())
		}
		if s.Zero != "" {
			fmt.Fprintf(&text, ", zero: '%s'", s.Zero)
		}
		if kinds[s.Key] == reflect.Int {
			text.WriteString(", whole: true")
		}
		if kinds[s.Key] != reflect.Invalid && s.Key != "concurrency" { // which has a slider
			patched = append(patched, "  '"+s.Key+"',\n")
		}
		text.WriteString(" },\n")
	}
	text.WriteString(`} satisfies Record<string, WorkloadSetting>;

/** The path of a setting, as the API's problems name it. */
export type WorkloadSettingName = keyof typeof table;

/** The settings of a workload. */
export const workloadSettings: Record<WorkloadSettingName, WorkloadSetting> = table;

/** The settings that a form changes while the workload runs, in its order. */
export const patched = [
` + strings.Join(patched, "") + `] as const satisfies WorkloadSettingName[];
`)
	requireGenerated(t, file, text.String())
}

// patchKinds returns the kinds of the numbers in a patch by their paths.
func patchKinds() map[string]reflect.Kind {
	kinds := map[string]reflect.Kind{}
	for f := range reflect.TypeFor[api.WorkloadPatch]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		kinds[name] = f.Type.Elem().Kind()
		if f.Type.Elem().Kind() == reflect.Struct {
			for inner := range f.Type.Elem().Fields() {
				kinds[name+"."+inner.Tag.Get("json")] = inner.Type.Kind()
			}
		}
	}
	return kinds
}

// Fields have their present names, whatever version wrote the JSON, and stay at their places in the text.
func TestPresentNames(t *testing.T) {
	const before = `{"think_seconds": 2, "nested": {"think_time_seconds":1.5,"title":"think_seconds"}, "max_tokens": 5}`
	const now = `{"think_time"   : 2, "nested": {"think_time"        :1.5,"title":"think_seconds"}, "max_tokens": 5}`
	require.Equal(t, now, string(api.PresentNames([]byte(before))))
	require.Equal(t, now, string(api.PresentNames([]byte(now))))

	var shape api.WorkloadShape
	require.NoError(t, json.Unmarshal(api.PresentNames([]byte(before)), &shape))
	require.Equal(t, new(2.), shape.ThinkTime)
}

func TestTypeScriptHasShapes(t *testing.T) {
	const file = "../../src/client/shapes.ts"
	var text, numbers strings.Builder
	text.WriteString(`
import type { ShapePreset, TrafficShape } from './schema';

/** A number of a shape of traffic. */
export type ShapeNumber = Exclude<keyof TrafficShape, 'preset' | 'mix'>;

/** What a form shows of a shape of traffic. */
export interface ShapeInfo {
  readonly label: string;
  readonly description: string;
  /** The numbers that have an effect on it. */
  readonly numbers: readonly ShapeNumber[];
}

/** The shapes by their presets. */
export const shapes: Record<ShapePreset, ShapeInfo> = {
`)
	for i, s := range api.Shapes {
		kind, names := api.TrafficKind{Shape: api.TrafficShape{Preset: s.Preset}}, []string{}
		for f := range reflect.TypeFor[api.TrafficShape]().Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			label := f.Tag.Get("label")
			if label == "" {
				continue
			}
			if kind.CheckSetting("shape."+name, 1) == nil {
				names = append(names, "'"+name+"'")
			}
			if i > 0 {
				continue
			}
			fmt.Fprintf(&numbers, "  %s: { label: '%s'", name, label)
			if unit := f.Tag.Get("unit"); unit != "" {
				fmt.Fprintf(&numbers, ", unit: '%s'", unit)
			}
			numbers.WriteString(" },\n")
		}
		key := string(s.Preset)
		if strings.Contains(key, "-") {
			key = "'" + key + "'"
		}
		fmt.Fprintf(&text, "  %s: {\n    label: '%s',\n    description: '%s',\n    numbers: [%s],\n  },\n", key, s.Label,
			s.Description, strings.Join(names, ", "))
	}
	text.WriteString(`};

/** The labels and units of their numbers. */
export const shapeNumbers: Record<ShapeNumber, { readonly label: string; readonly unit?: string }> = {
` + numbers.String() + "};\n")
	requireGenerated(t, file, text.String())
}
