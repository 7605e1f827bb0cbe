import type { Plugin } from 'vite'

/** The code with `...{}` before each spread that begins a literal of several properties. */
export declare function plainSpreads(code: string, fileName?: string): string

/** For Vite: after all other plugins, some of which remove the empty spread. */
export declare function plainSpreadsPlugin(): Plugin
