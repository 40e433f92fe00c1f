#!/usr/bin/env python3
"""Makes tokenizer.json, a small tokenizer for examples and tests: byte-level BPE of 1024 tokens, learnt from tinyshakespeare.txt with
Hugging Face's tokenizers 0.23.3."""
import pathlib

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

folder = pathlib.Path(__file__).parent
tokenizer = Tokenizer(models.BPE())
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.train([str(folder / "tinyshakespeare.txt")], trainers.BpeTrainer(
    vocab_size=1024, show_progress=False, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
