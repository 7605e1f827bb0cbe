// Written by scripts/build-catalogue.mjs from @pydantic/genai-prices and catalogue-models.mjs. Do not edit.
//
// One model on each line: its name, whose price it is (* of everybody who serves it), context window, output limit, what
// it can do, and dollars per million tokens of input, output, cached input, cache write and cache write for an hour.
// After > stand the tokens of input above which a whole request costs something else. - is not known.

/** The day of the prices. */
export const PRICES_AS_OF = '2026-11-17'

export const CATALOG_LINES = `
gemini-2.0-flash * 1048576 8192 vt 0.1 0.4 0.025
gemini-2.0-flash-lite * 1048576 8192 vt 0.075 0.3
gemini-2.5-pro * 1048576 65536 vtr 1.25 10 0.125 >200000 2.5 15 0.25
gemini-2.5-flash * 1048576 65536 vtr 0.3 2.5 0.03
gemini-2.5-flash-lite * 1048576 65536 vtr 0.1 0.4 0.01
gemini-3-pro * 1048576 65536 vtr 2 12 0.2 >200000 4 18 0.4
gemini-3-flash * 1048576 65536 vtr 0.5 3 0.05
gemini-3.1-pro * 1048576 65536 vtr 2 12 0.2 >200000 4 18 0.4
gemini-3.1-flash-lite * 1048576 65536 vtr 0.25 1.5 0.025
gemini-3.5-flash * 1048576 65536 vtr 1.5 9 0.15
gemini-3.5-flash-lite * 1048576 65536 vtr 0.3 2.5 0.03
gemini-3.6-flash * 1048576 65536 vtr 0.75 3.75 0.075
gemini-3.7-flash * 1048576 65536 vtr 0.75 3.75 0.075
gemini-3.8-flash * 1048576 65536 vtr 0.75 3.75 0.075
gpt-4o * 128000 16384 vt 2.5 10 1.25
gpt-4o-mini * 128000 16384 vt 0.15 0.6 0.075
gpt-4.1 * 1047576 32768 vt 2 8 0.5
gpt-4.1-mini * 1047576 32768 vt 0.4 1.6 0.1
gpt-4.1-nano * 1047576 32768 vt 0.1 0.4 0.025
o1 * 200000 100000 vtr 15 60 7.5
o1-pro * 200000 100000 vtr 150 600
o3 * 200000 100000 vtr 2 8 0.5
o3-mini * 200000 100000 tr 1.1 4.4 0.55
o3-pro * 200000 100000 vtr 20 80
o4-mini * 200000 100000 vtr 1.1 4.4 0.275
gpt-5 * 400000 128000 vtr 1.25 10 0.125
gpt-5-mini * 400000 128000 vtr 0.25 2 0.025
gpt-5-nano * 400000 128000 vtr 0.05 0.4 0.005
gpt-5-pro * 400000 128000 vtr 15 120
gpt-5-chat * 128000 16384 v 1.25 10 0.125
gpt-5-codex * 400000 128000 vtr 1.25 10 0.125
gpt-5.1 * 400000 128000 vtr 1.25 10 0.125
gpt-5.1-chat * 128000 16384 vt 1.25 10 0.125
gpt-5.1-codex * 400000 128000 vtr 1.25 10 0.125
gpt-5.1-codex-mini * 400000 128000 vtr 0.25 2 0.025
gpt-5.2 * 400000 128000 vtr 1.75 14 0.175
gpt-5.2-chat * 128000 16384 vt 1.75 14 0.175
gpt-5.2-codex * 400000 128000 vtr 1.75 14 0.175
gpt-5.2-pro * 400000 128000 vtr 21 168
gpt-5.3 * 128000 16384 vt 1.75 14 0.175
gpt-5.3-chat * 128000 16384 vt 1.75 14 0.175
gpt-5.3-codex * 400000 128000 vtr 1.75 14 0.175
gpt-5.4 * 1050000 128000 vtr 2.5 15 0.25 >271999 5 22.5 0.5
gpt-5.4-mini * 400000 128000 vtr 0.75 4.5 0.075
gpt-5.4-nano * 400000 128000 vtr 0.2 1.25 0.02
gpt-5.4-pro * 1050000 128000 vtr 30 180 >271999 60 270
gpt-5.5 * 1050000 128000 vtr 5 30 0.5 >271999 10 45 1
gpt-5.5-pro * 1050000 128000 vtr 30 180 >271999 60 270
gpt-5.6 * 1050000 128000 vtr 4 20 0.4 5 >271999 8 30 0.8 10
gpt-5.6-sol * 1050000 128000 vtr 4 20 0.4 5 >271999 8 30 0.8 10
gpt-5.6-terra * 1050000 128000 vtr 2 12 0.2 2.5 >271999 4 18 0.4 5
gpt-5.6-luna * 1050000 128000 vtr 0.2 1.2 0.02 0.25 >271999 0.4 1.8 0.04 0.5
gpt-6-astra * 1050000 128000 vtr 10 50 1 12.5 >271999 20 75 2 25
gpt-6-sol * 1050000 128000 vtr 2 10 0.2 2.5 >272000 4 15 0.4 5
gpt-6-luna * 1050000 128000 vtr 0.1 0.5 0.01 0.125 >272000 0.2 0.75 0.02 0.25
chatgpt-4o-latest * 128000 8192 - 5 15
codex-mini * 200000 8192 - 1.5 6 0.375
gpt-4o-2024-05-13 * 128000 8192 - 5 15
gpt-5.1-codex-max * 400000 8192 - 1.25 10 0.125
gpt-5.1-mini * 400000 8192 - 0.25 2 0.025
gpt-5.5-chat * 1000000 8192 - 5 30 0.5 >271999 10 45 1
gpt-5.5-codex * 1000000 8192 - 5 30 0.5 >271999 10 45 1
o1-mini * 128000 8192 - 1.1 4.4 0.55
o3-mini-high * 200000 8192 - 1.1 4.4 0.55
o4-mini-high * 200000 8192 - 1.1 4.4 0.275
claude-3-5-haiku * 200000 8192 vt 0.8 4 0.08 1 1.6
claude-3-7-sonnet * 200000 64000 vtr 3 15 0.3 3.75 6
claude-opus-4 * 200000 32000 vtr 15 75 1.5 18.75 30
claude-opus-4-0 * 200000 32000 vtr 15 75 1.5 18.75 30
claude-opus-4-1 * 200000 32000 vtr 15 75 1.5 18.75 30
claude-sonnet-4 * 200000 64000 vtr 3 15 0.3 3.75 6
claude-sonnet-4-0 * 200000 64000 vtr 3 15 0.3 3.75 6
claude-haiku-4-5 * 200000 64000 vtr 1 5 0.1 1.25 2
claude-sonnet-4-5 * 200000 64000 vtr 3 15 0.3 3.75 6 >200000 6 22.5 0.6 7.5 12
claude-opus-4-5 * 200000 64000 vtr 5 25 0.5 6.25 10
claude-sonnet-4-6 * 1000000 64000 vtr 3 15 0.3 3.75 6
claude-opus-4-6 * 1000000 128000 vtr 5 25 0.5 6.25 10
claude-opus-4-7 * 1000000 128000 vtr 5 25 0.5 6.25 10
claude-opus-4-8 * 1000000 128000 vtr 5 25 0.5 6.25 10
claude-fable-5 * 1000000 128000 vtr 10 50 1 12.5 20
claude-fable-5-1 * 1000000 128000 vtr 10 50 0.25 12.5 20
claude-sonnet-5 * 1000000 128000 vtr 2 10 0.2 2.5 4
claude-sonnet-5-5 * 1000000 128000 vtr 2 10 0.1 2.5 4
claude-haiku-5-5 * 1000000 128000 vtr 0.1 0.5 0.01 0.125 0.2 >100000 0.5 2.5 0.05 0.625 1
claude-opus-5 * 1000000 128000 vtr 5 25 0.5 6.25 10
claude-opus-5-5 * 1000000 128000 vtr 4 20 0.2 5 8
claude-3-5-sonnet * 200000 8192 - 3 15 0.3 3.75 6
mistral-large-latest mistral 262144 32768 vt 0.5 1.5 0.05
mistral-large-2407 mistral 131072 16384 t 2 6
mistral-large-2411 mistral 131072 16384 t 2 6
mistral-large-2512 mistral 262144 32768 vt 0.5 1.5 0.05
mistral-medium-latest mistral 262144 32768 vtr 1.5 7.5 0.15
mistral-medium-2505 mistral 131072 32768 vt 0.4 2 0.04
mistral-medium-2508 mistral 131072 32768 vt 0.4 2 0.04
mistral-small-latest mistral 262144 32768 vtr 0.15 0.6 0.015
mistral-small-2506 mistral 128000 16384 vt 0.1 0.3
mistral-small-2603 mistral 262144 32768 vtr 0.15 0.6 0.015
magistral-medium-latest mistral 131072 16384 vtr 2 5
codestral-latest mistral 256000 16384 t 0.3 0.9
devstral-latest mistral 262144 32768 t 0.4 2 0.04
codestral-2501 mistral 256000 8192 - 0.3 0.9
codestral-2508 mistral 256000 8192 - 0.3 0.9 0.03
devstral-2512 mistral 262144 8192 - 0.4 2 0.04
ministral-14b-2512 mistral 262144 8192 - 0.2 0.2 0.02
ministral-3b-2512 mistral 131072 8192 - 0.1 0.1 0.01
ministral-8b-2512 mistral 262144 8192 - 0.15 0.15 0.015
mistral-medium-3.5 mistral 262144 8192 - 1.5 7.5 0.15
mistral-medium-3-5 mistral 262144 8192 - 1.5 7.5 0.15
mistral-medium-3 mistral 262144 8192 - 1.5 7.5 0.15
deepseek-chat deepseek 1000000 8192 t 0.28 0.42 0.028
deepseek-reasoner deepseek 1000000 65536 tr 0.28 0.42 0.028
deepseek-v4-pro deepseek 1000000 65536 tr 1.32 3.96 0.044
deepseek-v4-flash deepseek 1000000 65536 tr 0.44 1.32 0.014
deepseek-chat-v3-0324 deepseek 64000 8192 - 0.27 1.1 0.07
deepseek-r1 deepseek 64000 8192 - 0.55 2.19 0.14
deepseek-v3.1-terminus deepseek 128000 8192 - 0.27 0.95 0.13
deepseek-v3.2 deepseek 128000 8192 - 0.2288 0.3432
deepseek-v3.2-exp deepseek 128000 8192 - 0.27 0.41
kimi-k2.5 moonshot 262144 65536 vtr 0.6 3 0.1
kimi-k2.6 moonshot 262144 65536 vtr 0.95 4 0.16
kimi-k2.7-code moonshot 262144 65536 vtr 0.95 4 0.19
kimi-k3 moonshot 1048576 131072 vtr 3 15 0.3
kimi-k2.7-code-highspeed moonshot 262144 8192 - 1.9 8 0.38
moonshot-v1-128k moonshot 131072 8192 - 2 5
moonshot-v1-128k-vision-preview moonshot 131072 8192 - 2 5
moonshot-v1-32k moonshot 32768 8192 - 1 3
moonshot-v1-32k-vision-preview moonshot 32768 8192 - 1 3
moonshot-v1-8k moonshot 8192 2048 - 0.2 2
moonshot-v1-8k-vision-preview moonshot 8192 2048 - 0.2 2
glm-5.2 zai 1000000 131072 tr 1.4 4.4 0.26
glm-5.3 zai 1000000 131072 tr 1.4 4.4 0.26
glm-5.3-flash zai 1000000 131072 vtr 0.075 0.25 0.015
minimax-m2.7 minimax 204800 65536 tr 0.3 1.2 0.06 0.375
minimax-m3 minimax 1000000 131072 vtr 0.3 1.2 0.06 >512000 0.6 2.4 0.12
minimax-m2 minimax 204800 8192 - 0.3 1.2 0.03 0.375
minimax-m2.1 minimax 204800 8192 - 0.3 1.2 0.03 0.375
minimax-m2.5 minimax 204800 8192 - 0.3 1.2 0.03 0.375
minimax-01 minimax 1000192 8192 - 0.2 1.1
grok-4 * 256000 65536 vtr 3 15 0.75
grok-4-fast * 2000000 30000 vtr 0.2 0.5 0.05
grok-4-fast-non-reasoning * 2000000 30000 vt 0.2 0.5 0.05
grok-4.3 * 1000000 30000 vtr 1.25 2.5 0.2 >199999 2.5 5 0.4
grok-4.5 * 500000 125000 vtr 2 6 0.3 >199999 4 12 0.6
grok-4.6 * 500000 125000 vtr 2 6 0.5 >199999 4 12 1
grok-code-fast-1 * 256000 10000 tr 0.2 1.5 0.02
grok-2-vision * 32768 8192 - 2 10
grok-3 * 131072 8192 - 3 15 0.75
grok-3-fast * 131072 8192 - 5 25 1.25
grok-3-mini * 131072 8192 - 0.3 0.5 0.075
grok-3-mini-fast * 131072 8192 - 0.6 4 0.15
grok-4-1-fast-non-reasoning * 2000000 8192 - 0.2 0.5 0.05
grok-4-1-fast * 2000000 8192 - 0.2 0.5 0.05
grok-4-1-fast-reasoning * 2000000 8192 - 0.2 0.5 0.05
grok-4-fast-reasoning * 2000000 8192 - 0.2 0.5 0.05
grok-4.20 * 1000000 8192 - 1.25 2.5 0.2 >199999 2.5 5 0.4
grok-4.20-multi-agent * 1000000 8192 - 2 6 0.2
grok-latest * 500000 8192 - 2 6 0.3 >199999 4 12 0.6
grok-build-0.1 * 256000 8192 - 1 2 0.2 >199999 2 4 0.4
grok-code-fast * 256000 8192 - 0.2 1.5 0.02
gpt-oss * 131072 32768 tr
llama-3.1 * 131072 8192 t
llama-3.3 * 131072 32768 t
llama-4 * 131072 8192 vt
qwen3 * 131072 16384 t
qwen2.5 * 131072 8192 t
deepseek-r1-distill-llama-70b groq - - - 0.75 0.99
llama-4-maverick-17b-128e-instruct groq - - - 0.2 0.6
kimi-k2-instruct groq - - - 1 3 0.5
kimi-k2-instruct-0905 groq - - - 1 3 0.5
gpt-oss-120b groq - - - 0.15 0.6 0.075
gpt-oss-20b groq - - - 0.075 0.3 0.0375
qwen3-32b groq - - - 0.29 0.59
gemma-4-31b cerebras - - - 0.99 1.49
gpt-oss-120b cerebras - - - 0.35 0.75
deepseek-r1-0528 fireworks - - - 3 8
deepseek-v3-0324 fireworks - - - 0.9 0.9
deepseek-v3p2 fireworks - - - 0.56 1.68 0.28
deepseek-v4-flash fireworks - - - 0.14 0.28 0.028
deepseek-v4-flash-0731 fireworks - - - 0.14 0.28 0.028
deepseek-v4-pro fireworks - - - 1.74 3.48 0.145
gemma-3-27b-it fireworks - - - 0.1 0.1
glm-4p7 fireworks - - - 0.6 2.2
glm-5p2 fireworks - - - 1.4 4.4 0.14
glm-5p2-fast fireworks - - - 2.1 6.6 0.21
glm-5p2-fast-us fireworks - - - 2.1 6.6 0.21
gpt-oss-120b fireworks - - - 0.15 0.6 0.014
gpt-oss-20b fireworks - - - 0.07 0.3 0.035
kimi-k2p5 fireworks - - - 0.6 3 0.1
kimi-k2p6-fast fireworks - - - 2 8 0.3
kimi-k2p7-code fireworks - - - 0.95 4 0.19
kimi-k2p7-code-fast fireworks - - - 1.9 8 0.38
kimi-k3 fireworks - - - 3 15 0.3
kimi-k3-fast fireworks - - - 4.5 22.5 0.45
kimi-k3-us fireworks - - - 3.3 16.5 0.33
llama-v3p1-8b-instruct fireworks - - - 0.2 0.2
llama4-maverick-instruct-basic fireworks - - - 0.22 0.88
minimax-m2p1 fireworks - - - 0.3 1.2
minimax-m3 fireworks - - - 0.3 1.2 0.06
nemotron-3-ultra-nvfp4 fireworks - - - 0.6 2.4 0.12
qwen2p5-vl-72b-instruct fireworks - - - 0.9 0.9
qwen3-235b-a22b fireworks - - - 0.22 0.88
qwen3p7-plus fireworks - - - 0.4 1.6 0.08
`
