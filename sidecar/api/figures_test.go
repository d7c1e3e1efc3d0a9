package api_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kvbooth/sidecar/api"
)

// The front end has what screens say of the figures from here.
func TestTypeScriptHasFigures(t *testing.T) {
	const file = "../../src/client/figures.ts"
	var text strings.Builder
	text.WriteString(`
/** What is the same of a key figure on every screen. */
export interface FigureInfo {
  readonly name: string;
  /** What it is, in sentences. */
  readonly help: string;
  readonly unit:
    | 's'
    | 'ratio'
    | 'requests/s'
    | 'tokens/s'
    | 'tokens'
    | 'bytes'
    | 'requests'
    | 'conversations'
    | 'J'
    | '$';
  /** The direction in which it improves; absent: neither. */
  readonly better?: 'lower' | 'higher';
  /** The objective for its p95. */
  readonly slo?: 'ttft' | 'tpot';
  /** Whether the load generator's own error may have either sign. */
  readonly bothWays?: boolean;
}

const table = {
`)
	for _, f := range api.Figures {
		fmt.Fprintf(&text, "  %s: {\n    name: '%s',\n    help: '%s',\n    unit: '%s',\n", f.Key, f.Name, f.Help, f.Unit)
		if f.Better != api.BetterNone {
			fmt.Fprintf(&text, "    better: '%s',\n", f.Better)
		}
		if f.Objective != nil {
			fmt.Fprintf(&text, "    slo: '%s',\n", f.Key)
		}
		if f.BothWays {
			text.WriteString("    bothWays: true,\n")
		}
		text.WriteString("  },\n")
	}
	text.WriteString(`} satisfies Record<string, FigureInfo>;

/** A key figure, as the API names it. */
export type FigureKey = keyof typeof table;

/** The key figures. */
export const figures: Record<FigureKey, FigureInfo> = table;

/** The latencies of a turn, which have percentiles. */
export const times = [
`)
	for _, f := range api.Times {
		fmt.Fprintf(&text, "  '%s',\n", f.Key)
	}
	text.WriteString(`] as const satisfies FigureKey[];

/** A latency of a turn. */
export type TimeKey = (typeof times)[number];

/** The fields of a turn that files have, in the order of the fields. */
export const turnFields = [
`)
	for f := range reflect.TypeFor[api.Turn]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); f.Tag.Get("csv") != "" {
			fmt.Fprintf(&text, "  '%s',\n", name)
		}
	}
	text.WriteString(`] as const;
`)
	requireGenerated(t, file, text.String())
}

func TestNameInSentence(t *testing.T) {
	require.Equal(t, "end-to-end latency", api.FigureOf("latency").InSentence())
	require.Equal(t, "KV hit rate", api.FigureOf("kv_hit_ratio").InSentence())
	require.Nil(t, api.FigureOf("unknown"))
}
