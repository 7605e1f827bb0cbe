/**
 * The seed of generated inputs. It is fixed, so that a run of the tests says something about the change and nothing
 * about luck; `npm run fuzz` tries others, and LANGO_SEED repeats one of them here.
 */
export const SEED = Number(process.env.LANGO_SEED ?? 20_261_117)
