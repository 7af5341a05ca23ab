"""fedrecplus between silos: a Flower app whose clients are organisations with the ratings of many people each."""
