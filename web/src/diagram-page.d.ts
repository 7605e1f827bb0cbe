/** The address of the document that draws diagrams; the build makes both. */
declare module '*?page' {
  export const diagramPage: string
}
