import { expect, test } from 'vitest'
import { sourcesOf } from './sources.js'

test('sources are pages, places, documents, quotations and fetched pages, each address once', () => {
  const sources = sourcesOf({
    groundingMetadata: {
      groundingChunks: [
        { web: { uri: 'https://a.example', title: 'A' } },
        { maps: { uri: 'https://maps.example/1', title: 'Café' } },
        { retrievedContext: { uri: 'gs://bucket/doc', title: 'Doc' } },
        { image: { sourceUri: 'https://images.example', imageUri: 'https://images.example/1.png' } },
        { web: {} },
        'not a chunk',
      ],
    },
    citationMetadata: {
      citations: [{ uri: 'https://a.example' }, { uri: 'https://book.example', title: 'Book' }],
    },
    urlContextMetadata: {
      urlMetadata: [
        { retrievedUrl: 'https://b.example/x', urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_SUCCESS' },
        { retrievedUrl: 'https://c.example', urlRetrievalStatus: 'URL_RETRIEVAL_STATUS_ERROR' },
      ],
    },
  })
  expect(sources).toEqual([
    { url: 'https://a.example', title: 'A' },
    { url: 'https://maps.example/1', title: 'Café' },
    { url: 'gs://bucket/doc', title: 'Doc' },
    { url: 'https://images.example' },
    { url: 'https://book.example', title: 'Book' },
    { url: 'https://b.example/x' },
  ])
})

test.each([
  {},
  { groundingMetadata: null },
  { groundingMetadata: { groundingChunks: 'x' } },
  { citationMetadata: 3 },
])('metadata %j has no sources', metadata => {
  expect(sourcesOf(metadata)).toEqual([])
})
