"""The bundled prompts: passages of books whose authors died before 1950, and two of our own; a question after each.

Among the books: Alice's Adventures in Wonderland, A Tale of Two Cities, Moby-Dick, Pride and Prejudice, Walden, On the
Origin of Species, The Time Machine, Frankenstein, Dracula, The Wealth of Nations, Heart of Darkness, Jane Eyre.
"""

QUESTION = "Explain in your own words what happens in the passage above, then continue it for two more paragraphs."
MEASURED = 24
"""The first so many are measured; the rest warm the server up."""

PASSAGES = (
    "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do: once "
    "or twice she had peeped into the book her sister was reading, but it had no pictures or conversations in it.",
    "It was the best of times, it was the worst of times, it was the age of wisdom, it was the age of foolishness, "
    "it was the epoch of belief, it was the epoch of incredulity, it was the season of Light, it was the season of "
    "Darkness.",
    "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, and "
    "nothing particular to interest me on shore, I thought I would sail about a little and see the watery part of "
    "the world.",
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, must be in want of "
    "a wife.",
    "I went to the woods because I wished to live deliberately, to front only the essential facts of life, and see "
    "if I could not learn what it had to teach, and not, when I came to die, discover that I had not lived.",
    "It is interesting to contemplate an entangled bank, clothed with many plants of many kinds, with birds singing "
    "on the bushes, with various insects flitting about, and with worms crawling through the damp earth.",
    "Four score and seven years ago our fathers brought forth on this continent, a new nation, conceived in "
    "Liberty, and dedicated to the proposition that all men are created equal.",
    "The Time Traveller, for so it will be convenient to speak of him, was expounding a recondite matter to us. His "
    "grey eyes shone and twinkled, and his usually pale face was flushed and animated.",
    "It was on a dreary night of November that I beheld the accomplishment of my toils. With an anxiety that almost "
    "amounted to agony, I collected the instruments of life around me.",
    "No one would have believed in the last years of the nineteenth century that this world was being watched "
    "keenly and closely by intelligences greater than man's and yet as mortal as his own.",
    "Left Munich at 8:35 P.M., on 1st May, arriving at Vienna early next morning; should have arrived at 6:46, but "
    "train was an hour late. Buda-Pesth seems a wonderful place, from the glimpse which I got of it from the train.",
    "To Sherlock Holmes she is always the woman. I have seldom heard him mention her under any other name. In his "
    "eyes she eclipses and predominates the whole of her sex.",
    "Marley was dead: to begin with. There is no doubt whatever about that. The register of his burial was signed "
    "by the clergyman, the clerk, the undertaker, and the chief mourner. Scrooge signed it.",
    "The Nellie, a cruising yawl, swung to her anchor without a flutter of the sails, and was at rest. The flood "
    "had made, the wind was nearly calm, and being bound down the river, the only thing for it was to come to and "
    "wait for the turn of the tide.",
    "When in the Course of human events, it becomes necessary for one people to dissolve the political bands which "
    "have connected them with another, a decent respect to the opinions of mankind requires that they should "
    "declare the causes.",
    "There was no possibility of taking a walk that day. We had been wandering, indeed, in the leafless shrubbery "
    "an hour in the morning; but since dinner the cold winter wind had brought with it clouds so sombre, and a rain "
    "so penetrating.",
    "Mr. Utterson the lawyer was a man of a rugged countenance that was never lighted by a smile; cold, scanty and "
    "embarrassed in discourse; backward in sentiment; lean, long, dusty, dreary and yet somehow lovable.",
    "You don't know about me without you have read a book by the name of The Adventures of Tom Sawyer; but that "
    "ain't no matter. That book was made by Mr. Mark Twain, and he told the truth, mainly.",
    "Squire Trelawney, Dr. Livesey, and the rest of these gentlemen having asked me to write down the whole "
    "particulars about Treasure Island, from the beginning to the end, keeping nothing back but the bearings of the "
    "island.",
    "The Mole had been working very hard all the morning, spring-cleaning his little home. First with brooms, then "
    "with dusters; then on ladders and steps and chairs, with a brush and a pail of whitewash.",
    "The greatest improvement in the productive powers of labour, and the greater part of the skill, dexterity, and "
    "judgment, with which it is anywhere directed, or applied, seem to have been the effects of the division of "
    "labour.",
    "Dorothy lived in the midst of the great Kansas prairies, with Uncle Henry, who was a farmer, and Aunt Em, who "
    "was the farmer's wife. Their house was small, for the lumber to build it had to be carried by wagon many "
    "miles.",
    "During the whole of a dull, dark, and soundless day in the autumn of the year, when the clouds hung "
    "oppressively low in the heavens, I had been passing alone, on horseback, through a singularly dreary tract of "
    "country.",
    "The studio was filled with the rich odour of roses, and when the light summer wind stirred amidst the trees of "
    "the garden, there came through the open door the heavy scent of the lilac.",
    "Happy families are all alike; every unhappy family is unhappy in its own way. Everything was in confusion in "
    "the house, and the wife had announced to her husband that she could not go on living in it with him.",
    "The sun had not yet risen over the harbour when the first boats came home, low in the water with herring, and "
    "the women were already standing on the stones with their baskets.",
    "My father's family name being Pirrip, and my Christian name Philip, my infant tongue could make of both names "
    "nothing longer or more explicit than Pip. So, I called myself Pip, and came to be called Pip.",
    "I was born in the year 1632, in the city of York, of a good family, though not of that country, my father "
    "being a foreigner of Bremen, who settled first at Hull.",
    "Once upon a time there were four little Rabbits, and their names were Flopsy, Mopsy, Cotton-tail, and Peter. "
    "They lived with their Mother in a sand-bank, underneath the root of a very big fir-tree.",
    "Buck did not read the newspapers, or he would have known that trouble was brewing, not alone for himself, but "
    "for every tide-water dog, strong of muscle and with warm, long hair.",
    "The history of the rise and growth of the steam-engine is that of a great number of small improvements, each "
    "made by somebody who wished his own machine to burn a little less coal.",
    "Whether I shall turn out to be the hero of my own life, or whether that station will be held by anybody else, "
    "these pages must show.",
)
