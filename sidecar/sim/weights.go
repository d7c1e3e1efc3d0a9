package sim

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"

	"kvbooth/sidecar/sim/bpe"
)

// The shape of the random model: 32 million parameters, of which 26 million are the tokens' embeddings.
const (
	randomHidden, randomFeedForward, randomLayers, randomHeads = 256, 704, 8, 4
	randomContext                                              = 32_768
)

// WriteRandomModel writes a Llama with random weights, which an engine loads and runs on a CPU: config.json with the
// tokenizer of [Encode], and 64 MB of weights. Its answers are words without meaning. Each is one token, also where the
// answer is sent again as a part of a prompt, so that an engine finds the blocks of the answer in its cache. It never
// ends an answer itself.
func WriteRandomModel(dir string) error {
	config := maps.Clone(modelConfig)
	maps.Copy(config, object{
		"hidden_size": randomHidden, "intermediate_size": randomFeedForward, "num_hidden_layers": randomLayers,
		"num_attention_heads": randomHeads, "num_key_value_heads": randomHeads, "head_dim": randomHidden / randomHeads,
		"max_position_embeddings": randomContext, "tie_word_embeddings": true,
	})
	return writeModel(dir, config, modelFile{"model.safetensors", writeWeights})
}

// tensor is a matrix of random weights, or a vector of equal ones.
type tensor struct {
	name          string
	rows, columns int                       // a vector has 0 rows
	scale         func(row int) (s float64) // standard deviation of a row, or the value of a vector
}

func randomTensors() []tensor {
	const h, f = randomHidden, randomFeedForward
	fixed := func(s float64) func(int) float64 { return func(int) float64 { return s } }
	// With 1 over the root of the inputs, each layer adds as much as came in, and the last token does not repeat itself.
	matrix := func(name string, rows, columns int) tensor {
		return tensor{name, rows, columns, fixed(1 / math.Sqrt(float64(columns)))}
	}
	all := []tensor{{"model.embed_tokens.weight", vocabularySize, h, embeddingScale()}}
	for i := range randomLayers {
		layer := fmt.Sprintf("model.layers.%d.", i)
		all = append(all,
			tensor{layer + "input_layernorm.weight", 0, h, fixed(1)},
			matrix(layer+"self_attn.q_proj.weight", h, h), matrix(layer+"self_attn.k_proj.weight", h, h),
			matrix(layer+"self_attn.v_proj.weight", h, h), matrix(layer+"self_attn.o_proj.weight", h, h),
			tensor{layer + "post_attention_layernorm.weight", 0, h, fixed(1)},
			matrix(layer+"mlp.gate_proj.weight", f, h), matrix(layer+"mlp.up_proj.weight", f, h),
			matrix(layer+"mlp.down_proj.weight", h, f))
	}
	const sharpness = 12 // of the answers' choices: only words have a chance
	return append(all, tensor{"model.norm.weight", 0, h, fixed(sharpness)})
}

// words are tokens that a text of them has again: a blank and small letters.
var words = regexp.MustCompile(`^ [a-z]{2,}$`)

// embeddingScale makes the embeddings of words large. They are the output's weights, too, so that only words are
// chosen.
func embeddingScale() func(row int) float64 {
	return func(row int) float64 {
		if words.MatchString(bpe.Token(uint32(row))) {
			return .05
		}
		return .0025
	}
}

// writeWeights writes the weights in the safetensors format: the length of a JSON header, the header, and the numbers,
// here as bfloat16, the upper half of a 32-bit float.
func writeWeights(w io.Writer) error {
	header, at := object{}, 0
	tensors := randomTensors()
	for _, t := range tensors {
		shape, end := []int{t.rows, t.columns}, at+2*max(t.rows, 1)*t.columns
		if t.rows == 0 {
			shape = shape[1:]
		}
		header[t.name] = object{"dtype": "BF16", "shape": shape, "data_offsets": []int{at, end}}
		at = end
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	out, rng := bufio.NewWriter(w), rand.New(rand.NewPCG(1, 1))
	number := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	_, _ = out.Write(append(number, text...)) // Flush returns the error
	for _, t := range tensors {
		for row := range max(t.rows, 1) {
			scale := t.scale(row)
			for range t.columns {
				x := scale
				if t.rows > 0 {
					x *= rng.NormFloat64()
				}
				_, _ = out.Write(binary.LittleEndian.AppendUint16(number[:0], uint16(math.Float32bits(float32(x))>>16)))
			}
		}
	}
	return out.Flush()
}
