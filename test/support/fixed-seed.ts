/** Every property of fast-check starts from the one seed. */
import fc from 'fast-check'
import { SEED } from './seed.js'

fc.configureGlobal({ seed: SEED })
