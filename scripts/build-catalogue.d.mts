/** The whole text of src/provider/model-catalog-data.ts. */
export function catalogueText(): string
/** Vendors, names and prices of all models of text that the package knows. */
export function packagePrices(): { vendor: string; name: string; price: (number | string)[] }[]
/** Names whose price is our own, or the package's for another name. */
export function ownNames(): string[]
