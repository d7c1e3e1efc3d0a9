package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2/maybe"

	"kvbooth/sidecar/sim/bpe"
)

// WriteModel writes the files that Dynamo reads of a model whose weights are never loaded: config.json (the shape of
// Llama 3.1 70B, with this tokenizer's vocabulary), generation_config.json, tokenizer.json and tokenizer_config.json.
// It makes the folder where necessary. Each file is replaced atomically, so that concurrent readers always see
// complete files.
func WriteModel(dir string) error { return writeModel(dir, modelConfig) }

// modelFile is a file of a model's folder.
type modelFile struct {
	name  string
	write func(io.Writer) error
}

func writeModel(dir string, config object, more ...modelFile) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	for _, file := range append([]modelFile{
		{"config.json", writeObject(config)},
		{"generation_config.json", writeObject(generationConfig)},
		{"tokenizer_config.json", writeObject(tokenizerConfig)},
		{"tokenizer.json", WriteTokenizerJSON},
	}, more...) {
		var text bytes.Buffer
		err := file.write(&text)
		if err == nil {
			err = maybe.WriteFile(filepath.Join(dir, file.name), text.Bytes(), 0o644)
		}
		if err != nil {
			return fmt.Errorf("write model: %s: %w", file.name, err)
		}
	}
	return nil
}

type object map[string]any

var modelConfig = object{
	"architectures":           []string{"LlamaForCausalLM"},
	"model_type":              "llama",
	"hidden_size":             8192,
	"intermediate_size":       28672,
	"num_hidden_layers":       80,
	"num_attention_heads":     64,
	"num_key_value_heads":     8,
	"head_dim":                128,
	"hidden_act":              "silu",
	"max_position_embeddings": 131072,
	"rms_norm_eps":            1e-5,
	"rope_theta":              500000.0,
	"tie_word_embeddings":     false,
	"torch_dtype":             "bfloat16",
	"vocab_size":              vocabularySize,
	"bos_token_id":            endOfTextID,
	"eos_token_id":            messageEndID,
}

var generationConfig = object{
	"bos_token_id": endOfTextID,
	"eos_token_id": []int{messageEndID, endOfTextID},
}

var tokenizerConfig = object{
	"tokenizer_class":              "PreTrainedTokenizerFast",
	"chat_template":                chatTemplate,
	"bos_token":                    endOfText,
	"eos_token":                    messageEnd,
	"add_bos_token":                false,
	"add_prefix_space":             false,
	"clean_up_tokenization_spaces": false,
	"model_max_length":             131072,
}

func writeObject(o object) func(io.Writer) error {
	return func(w io.Writer) error {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(o)
	}
}

// WriteTokenizerJSON writes the tokenizer in the tokenizer.json format of Hugging Face's tokenizers: a byte-level BPE
// with the vocabulary, the ids and the special tokens of [Encode], about 3 MB.
func WriteTokenizerJSON(w io.Writer) error {
	vocab := make(vocabulary, 0, bpe.Tokens+len(specialTokens))
	for id := range uint32(bpe.Tokens) {
		vocab = append(vocab, vocabularyEntry{inAlphabet(bpe.Token(id)), id})
	}
	var added []object
	for _, token := range specialTokens {
		vocab = append(vocab, vocabularyEntry{token.text, token.id})
		added = append(added, object{
			"id": token.id, "content": token.text, "special": true,
			"single_word": false, "lstrip": false, "rstrip": false, "normalized": false,
		})
	}
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	return json.NewEncoder(w).Encode(object{
		"version":      "1.0",
		"added_tokens": added,
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "Split", "pattern": object{"Regex": bpe.Pattern}, "behavior": "Isolated", "invert": false},
			byteLevel,
		}},
		"decoder": byteLevel,
		// A piece that is a token itself is never split, as in cl100k_base.
		"model": object{"type": "BPE", "ignore_merges": true, "vocab": vocab, "merges": merges()},
	})
}

// merges reconstructs the merge that made each token, in the order of the ids, which is the order in which they were
// learned. A Hugging Face BPE needs the merges, whereas cl100k_base uses the ids and stores no merges.
func merges() []string {
	var out []string
	for id := range uint32(bpe.Tokens) {
		if len(bpe.Token(id)) == 1 {
			continue
		}
		first, second := bpe.Halves(id)
		out = append(out, inAlphabet(first)+" "+inAlphabet(second))
	}
	return out
}

// alphabet maps each byte to one printable character: GPT-2's byte-to-unicode table, which every byte-level BPE of
// Hugging Face uses. Printable Latin-1 characters map to themselves, the other bytes to U+0100 and following.
var alphabet = func() (table [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b && b <= 'ÿ' {
			table[b] = b
			continue
		}
		table[b] = next
		next++
	}
	return table
}()

func inAlphabet(token string) string {
	out := make([]rune, len(token))
	for i := range len(token) {
		out[i] = alphabet[token[i]]
	}
	return string(out)
}

// vocabulary is a JSON object from token to id, in the order of its entries.
type vocabulary []vocabularyEntry

type vocabularyEntry struct {
	token string
	id    uint32
}

// MarshalJSON writes the entries in their order, which a map would lose.
func (v vocabulary) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, entry := range v {
		token, err := json.Marshal(entry.token)
		if err != nil {
			return nil, err
		}
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&b, "%s%s:%d", separator, token, entry.id)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}
