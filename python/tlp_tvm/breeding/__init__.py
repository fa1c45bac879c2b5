"""Programs bred natively, scored and chosen: what a search does before any TVM sees a program."""
